//! The engine of a shared circuit, as the facade carries for it. Every answer comes whole, for another thread may ask in
//! between.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMapping, PyString, PyTuple};
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask as Asked, Control, PermitKind, Script, Settle, SharedCircuit, SharedOptions,
    SharedPermit, Step,
};
use switchgear_core::{ConfigError, Millis, Settlement, Transition, name_from_utf16, prefix_from_utf16};
use switchgear_lua::SCRIPTS;

use crate::breaker::{Denial, TransitionSeen, checked_for_ms};
use crate::config::checked;
use crate::convert::{Layers, Moment, Raise, SnapshotSeen, locked, outcome_of, snapshot_seen};

/// A checked configuration of a shared circuit.
#[pyclass(frozen, module = "switchgear._native")]
pub struct SharedConfig {
    config: switchgear_core::Config,
    options: SharedOptions,
}

#[pymethods]
impl SharedConfig {
    #[new]
    fn new(py: Python<'_>, layers: Vec<Bound<'_, PyMapping>>) -> PyResult<Self> {
        let (config, options) = Layers::of(&layers)?.build(py, SharedOptions::build)?;
        Ok(Self { config, options })
    }
}

/// The right to one call.
#[pyclass(frozen, module = "switchgear._native")]
pub struct SharedGrant {
    permit: SharedPermit,
    #[pyo3(get)]
    is_free: bool,
}

#[pymethods]
impl SharedGrant {
    #[getter]
    const fn is_probe(&self) -> bool {
        matches!(self.permit.kind, PermitKind::Probe)
    }
}

/// A command to send.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Ask {
    #[pyo3(get)]
    ticket: u64,
    #[pyo3(get)]
    delay_ms: u64,
    #[pyo3(get)]
    reads: bool,
    #[pyo3(get)]
    command: Py<PyList>,
}

/// What came of a question, a reply, an error or a deadline.
#[pyclass(frozen, module = "switchgear._native", name = "Step")]
pub struct StepSeen {
    #[pyo3(get)]
    answer: Option<Py<PyAny>>,
    #[pyo3(get)]
    ask: Option<Py<Ask>>,
    #[pyo3(get)]
    transition: Option<Py<TransitionSeen>>,
    #[pyo3(get)]
    counted: bool,
    #[pyo3(get)]
    config_mismatch: bool,
    #[pyo3(get)]
    malformed: bool,
}

/// One shared circuit as this process sees it.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Circuit {
    engine: Mutex<SharedCircuit>,
    /// The keys of each script, in the order of [`Script::ALL`].
    keys: Vec<Vec<String>>,
    #[pyo3(get)]
    routing_key: String,
    success_is_free: bool,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
}

#[pymethods]
impl Circuit {
    #[new]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        prefix: &Bound<'_, PyAny>,
        nonce: u64,
        reads_primary: bool,
        config: &SharedConfig,
    ) -> PyResult<Self> {
        let name = checked(name, "name", name_from_utf16)?;
        let prefix = checked(prefix, "prefix", prefix_from_utf16)?;
        let engine = SharedCircuit::new(&name, &prefix, nonce, config.config.clone(), config.options)
            .map_err(|error| error.raise(py))?;
        Ok(Self {
            keys: Script::ALL.map(|script| engine.keys().of(script).to_vec()).to_vec(),
            routing_key: engine.keys().routing().to_owned(),
            success_is_free: engine.success_is_free(),
            reads_primary,
            engine: Mutex::new(engine),
        })
    }

    fn admit(&self, py: Python<'_>, now: Moment) -> PyResult<Ask> {
        let asked = locked(&self.engine).admit(now.0);
        self.ask(py, &asked)
    }

    #[pyo3(signature = (now, grant, outcome))]
    fn settle(&self, py: Python<'_>, now: Moment, grant: Option<&SharedGrant>, outcome: u32) -> PyResult<StepSeen> {
        let outcome = outcome_of(outcome)?;
        let settle = locked(&self.engine).settle(now.0, grant.map(|grant| grant.permit), outcome);
        let step = match settle {
            Settle::Done(settlement) => Step { answer: Some(Answer::Settled(settlement)), ..Step::default() },
            Settle::Tell(ask) => Step { ask: Some(ask), ..Step::default() },
        };
        self.seen(py, step)
    }

    fn get_state(&self, py: Python<'_>, now: Moment) -> PyResult<StepSeen> {
        let ask = locked(&self.engine).get_state(now.0);
        self.seen(py, Step { ask: Some(ask), ..Step::default() })
    }

    fn reset(&self, py: Python<'_>, now: Moment) -> PyResult<StepSeen> {
        self.control(py, now.0, Control::Reset)
    }

    #[pyo3(signature = (now, for_ms = None))]
    fn trip(&self, py: Python<'_>, now: Moment, for_ms: Option<&Bound<'_, PyAny>>) -> PyResult<StepSeen> {
        let for_ms = checked_for_ms(for_ms).map_err(|error| error.raise(py))?;
        self.control(py, now.0, Control::Trip { for_ms })
    }

    fn force_open(&self, py: Python<'_>, now: Moment) -> PyResult<StepSeen> {
        self.control(py, now.0, Control::ForceOpen)
    }

    fn disable(&self, py: Python<'_>, now: Moment) -> PyResult<StepSeen> {
        self.control(py, now.0, Control::Disable)
    }

    fn on_reading(&self, py: Python<'_>, now: Moment, ticket: u64, fields: &Bound<'_, PyAny>) -> PyResult<StepSeen> {
        let step = match read(fields) {
            Some(texts) => {
                let [a, b, c, d, e] = &texts;
                let fields = [a.as_deref(), b.as_deref(), c.as_deref(), d.as_deref(), e.as_deref()];
                locked(&self.engine).on_reading(now.0, ticket, fields)
            }
            None => locked(&self.engine).on_reply(now.0, ticket, MALFORMED),
        };
        self.seen(py, step)
    }

    fn on_reply(&self, py: Python<'_>, now: Moment, ticket: u64, reply: &Bound<'_, PyAny>) -> PyResult<StepSeen> {
        let integers = reply.cast::<PyList>().ok().and_then(|reply| reply.extract::<Vec<i64>>().ok());
        let step = locked(&self.engine).on_reply(now.0, ticket, integers.as_deref().unwrap_or(MALFORMED));
        self.seen(py, step)
    }

    fn on_error(&self, py: Python<'_>, now: Moment, ticket: u64, error: &Bound<'_, PyString>) -> PyResult<StepSeen> {
        let error = error.to_string_lossy();
        let step = locked(&self.engine).on_error(now.0, ticket, &error);
        self.seen(py, step)
    }

    fn on_deadline(&self, py: Python<'_>, ticket: u64) -> PyResult<StepSeen> {
        let step = locked(&self.engine).on_deadline(ticket);
        self.seen(py, step)
    }
}

/// A reply that no script of ours gives.
const MALFORMED: &[i64] = &[];

impl Circuit {
    fn control(&self, py: Python<'_>, now: Millis, control: Control) -> PyResult<StepSeen> {
        let asked: Result<Asked, ConfigError> = locked(&self.engine).control(now, control);
        let ask = asked.map_err(|error| error.raise(py))?;
        self.seen(py, Step { ask: Some(ask), ..Step::default() })
    }

    /// A command as the client takes it.
    fn ask(&self, py: Python<'_>, asked: &Asked) -> PyResult<Ask> {
        let Asked { ticket, script, by_text, delay_ms, args } = asked;
        let reads = *script == Script::Admit;
        let keys = &self.keys[*script as usize];
        let command = if reads && self.reads_primary {
            PyList::new(py, ["HMGET", &self.routing_key].into_iter().chain(ADMISSION_FIELDS))?
        } else {
            let shipped = &SCRIPTS[*script as usize];
            let head = if *by_text { ["EVAL", shipped.text] } else { ["EVALSHA", shipped.sha1] };
            let count = keys.len().to_string();
            let words: Vec<&str> = head
                .into_iter()
                .chain([count.as_str()])
                .chain(keys.iter().map(String::as_str))
                .chain(args.iter().map(String::as_str))
                .collect();
            PyList::new(py, words)?
        };
        Ok(Ask { ticket: *ticket, delay_ms: *delay_ms, reads, command: command.unbind() })
    }

    fn seen(&self, py: Python<'_>, step: Step) -> PyResult<StepSeen> {
        let Step { answer, ask, transition, counted, config_mismatch, malformed } = step;
        Ok(StepSeen {
            answer: answer.map(|answer| self.answer(py, answer)).transpose()?,
            ask: ask.map(|ask| Py::new(py, self.ask(py, &ask)?)).transpose()?,
            transition: transition.map(|t: Transition| Py::new(py, TransitionSeen::from(t))).transpose()?,
            counted,
            config_mismatch,
            malformed,
        })
    }

    fn answer(&self, py: Python<'_>, answer: Answer) -> PyResult<Py<PyAny>> {
        let word = |word: &str| Ok(PyString::intern(py, word).into_any().unbind());
        match answer {
            Answer::Granted(permit) => {
                let is_free = match permit.kind {
                    PermitKind::Closed => self.success_is_free,
                    PermitKind::Probe => false,
                    PermitKind::Bypass | PermitKind::Unasked => true,
                };
                Ok(Py::new(py, SharedGrant { permit, is_free })?.into_any())
            }
            Answer::Refused { state, retry_after } => Ok(Py::new(py, Denial::new(state, retry_after))?.into_any()),
            Answer::Unavailable => word("unavailable"),
            Answer::Settled(Settlement::Applied) => word("applied"),
            Answer::Settled(Settlement::Stale) => word("stale"),
            Answer::Controlled => word("controlled"),
            Answer::Snapshot(snapshot) => {
                let seen: SnapshotSeen = snapshot_seen(snapshot);
                Ok(seen.into_pyobject(py)?.into_any().unbind())
            }
        }
    }
}

/// Five fields, each bytes, text or none.
fn read(fields: &Bound<'_, PyAny>) -> Option<[Option<String>; 5]> {
    let fields: Vec<Bound<'_, PyAny>> = match (fields.cast::<PyList>(), fields.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return None,
    };
    let texts: Vec<Option<String>> = fields.iter().map(text).collect::<Option<_>>()?;
    texts.try_into().ok()
}

/// The outer none: neither bytes nor text nor none.
fn text(field: &Bound<'_, PyAny>) -> Option<Option<String>> {
    if field.is_none() {
        Some(None)
    } else if let Ok(text) = field.cast::<PyString>() {
        Some(Some(text.to_string_lossy().into_owned()))
    } else {
        let bytes = field.cast::<PyBytes>().ok()?;
        Some(Some(String::from_utf8_lossy(bytes.as_bytes()).into_owned()))
    }
}
