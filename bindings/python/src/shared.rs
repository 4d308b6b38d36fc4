//! The engine of a shared circuit, as the facade carries for it. Every answer comes whole, for another thread may ask in
//! between.

use std::borrow::Cow;
use std::iter;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMapping, PyString, PyTuple};
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask as Asked, Begun, Command, Control, Health, Others, PermitKind, Script, SharedCircuit,
    SharedOptions, SharedPermit, Step, Times, Whose,
};
use switchgear_core::{Outcome, Settlement, Transition, name_from_utf16, prefix_from_utf16};
use switchgear_lua::SCRIPTS;

use crate::breaker::{Denial, TransitionSeen, checked_for_ms};
use crate::config::checked;
use crate::convert::{Layers, Moment, Raise, SnapshotSeen, locked, outcome_of, snapshot_seen};
use crate::event::Announcement;
use crate::flight::Flight;
use crate::standing::Standing;

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

impl SharedConfig {
    /// Whether the success of a call that was admitted while CLOSED is never told.
    pub fn success_is_free(&self) -> bool {
        self.config.trip_on().ignores_successes()
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
        self.permit.kind.is_probe()
    }
}

impl SharedGrant {
    pub const fn new(permit: SharedPermit, success_is_free: bool) -> Self {
        let is_free = match permit.kind {
            PermitKind::Closed | PermitKind::LocalClosed => success_is_free,
            PermitKind::Probe | PermitKind::LocalProbe => false,
            PermitKind::Bypass | PermitKind::Unasked => true,
        };
        Self { permit, is_free }
    }
}

/// One server of the store as this process knows it.
///
/// INVARIANT: its lock is taken after that of a circuit, and nothing is locked after it.
#[pyclass(frozen, module = "switchgear._native")]
#[derive(Default)]
pub struct Node {
    inner: Mutex<switchgear_core::shared::Node>,
}

#[pymethods]
impl Node {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Another server has taken over what this one had. Whether listeners are to hear that it is no trouble any more.
    fn replaced(&self) -> bool {
        locked(&self.inner).replaced().is_some()
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
    frees: bool,
    #[pyo3(get)]
    succeeds: bool,
    words: Vec<Cow<'static, str>>,
}

#[pymethods]
impl Ask {
    #[getter]
    fn command<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.words)
    }

    #[getter]
    fn packed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut packed = format!("*{}\r\n", self.words.len());
        for word in &self.words {
            packed += &format!("${}\r\n{word}\r\n", word.len());
        }
        PyBytes::new(py, packed.as_bytes())
    }
}

/// What came of a question, a reply, an error or a deadline.
#[pyclass(frozen, module = "switchgear._native", name = "Step")]
pub struct StepSeen {
    #[pyo3(get)]
    answer: Option<Py<PyAny>>,
    #[pyo3(get)]
    ticket: Option<u64>,
    #[pyo3(get)]
    flight: Option<Py<Flight>>,
    #[pyo3(get)]
    others: &'static str,
    #[pyo3(get)]
    asks: Py<PyTuple>,
    #[pyo3(get)]
    transition: Option<Py<TransitionSeen>>,
    #[pyo3(get)]
    counted: bool,
    #[pyo3(get)]
    config_mismatch: bool,
    #[pyo3(get)]
    malformed: bool,
    #[pyo3(get)]
    health: Option<(&'static str, &'static str)>,
}

/// One shared circuit as this process sees it.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Circuit {
    desk: Mutex<Desk>,
    /// The keys of each script, in the order of [`Script::ALL`].
    keys: Vec<Vec<String>>,
    #[pyo3(get)]
    routing_key: String,
    success_is_free: bool,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
}

/// What one lock is for.
struct Desk {
    engine: SharedCircuit,
    /// The admission that others may join, and who has.
    flight: Option<(u64, Py<Flight>)>,
    /// Tells this engine from the others of the process, and of those that it was forked from.
    serial: u64,
    /// What takes what need not be asked for.
    standing: Option<Standing>,
}

/// A step, and what belongs to it, as it was while the lock was held.
struct Taken {
    step: Step,
    ticket: Option<u64>,
    flight: Option<Py<Flight>>,
    asks: Vec<Asked>,
    /// Nothing of Python is dropped under the lock.
    former: Option<(u64, Py<Flight>)>,
}

/// What asking for a call comes to.
#[derive(IntoPyObject)]
pub enum AdmissionSeen {
    /// Somebody else asks the same, and there is nothing else to it.
    Joins(Py<Flight>),
    Steps(StepSeen),
}

impl Desk {
    fn begun(&mut self, py: Python<'_>, begun: Begun, admits: bool) -> PyResult<Taken> {
        let (step, ticket) = match begun {
            Begun::Answered(step) => (step, None),
            Begun::Wait(ticket) => (Step::default(), Some(ticket)),
            Begun::Join(ticket) => {
                let flight = self.flight.as_ref().filter(|(led, _)| *led == ticket);
                return Ok(Taken {
                    flight: flight.map(|(_, flight)| flight.clone_ref(py)),
                    ..self.take(Step::default())
                });
            }
        };
        let mut taken = Taken { ticket, ..self.take(step) };
        if let Some(ticket) = ticket.filter(|_| admits) {
            let flight = Py::new(py, Flight::new(ticket))?;
            taken.flight = Some(flight.clone_ref(py));
            taken.former = self.flight.replace((ticket, flight));
        }
        Ok(taken)
    }

    fn take(&mut self, step: Step) -> Taken {
        if let Some(standing) = &self.standing {
            standing.take(self.serial, self.engine.free_until());
        }
        let asks = iter::from_fn(|| self.engine.next_ask()).collect();
        Taken { step, ticket: None, flight: None, asks, former: None }
    }
}

#[pymethods]
impl Circuit {
    #[new]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        prefix: &Bound<'_, PyAny>,
        nonce: u64,
        instance: &Bound<'_, PyString>,
        reads_primary: bool,
        config: &SharedConfig,
    ) -> PyResult<Self> {
        let name = checked(name, "name", name_from_utf16)?;
        let prefix = checked(prefix, "prefix", prefix_from_utf16)?;
        let instance = instance.to_string_lossy();
        let engine = SharedCircuit::new(&name, &prefix, nonce, &instance, config.config.clone(), config.options)
            .map_err(|error| error.raise(py))?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            keys: Script::ALL.map(|script| engine.keys().of(script).to_vec()).to_vec(),
            routing_key: engine.keys().routing().to_owned(),
            success_is_free: engine.success_is_free(),
            reads_primary,
            desk: Mutex::new(Desk { engine, flight: None, serial, standing: None }),
        })
    }

    fn admit(&self, py: Python<'_>, node: &Node, host: Moment, store: Option<Moment>) -> PyResult<AdmissionSeen> {
        let at = times(host, store);
        let taken = self.asked(py, node, true, |engine, node| engine.admit(node, at))?;
        Ok(match taken {
            Taken { ticket: None, flight: Some(flight), asks, .. } if asks.is_empty() => AdmissionSeen::Joins(flight),
            taken => AdmissionSeen::Steps(self.seen(py, taken)?),
        })
    }

    fn admit_unasked(&self, py: Python<'_>, host: Moment, store: Option<Moment>) -> PyResult<StepSeen> {
        let at = times(host, store);
        let taken = {
            let mut desk = locked(&self.desk);
            let step = desk.engine.admit_unasked(at);
            desk.take(step)
        };
        self.seen(py, taken)
    }

    #[pyo3(signature = (node, host, store, grant, outcome))]
    fn settle(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        grant: Option<&SharedGrant>,
        outcome: u32,
    ) -> PyResult<StepSeen> {
        let outcome: Outcome = outcome_of(outcome)?;
        let (at, permit) = (times(host, store), grant.map(|grant| grant.permit));
        let taken = self.asked(py, node, false, |engine, node| engine.settle(node, at, permit, outcome))?;
        self.seen(py, taken)
    }

    fn get_state(&self, py: Python<'_>, node: &Node, host: Moment, store: Option<Moment>) -> PyResult<StepSeen> {
        let at = times(host, store);
        let taken = self.asked(py, node, false, |engine, node| engine.get_state(node, at))?;
        self.seen(py, taken)
    }

    fn reset(&self, py: Python<'_>, node: &Node, host: Moment, store: Option<Moment>) -> PyResult<StepSeen> {
        self.control(py, node, times(host, store), Control::Reset)
    }

    #[pyo3(signature = (node, host, store, for_ms = None))]
    fn trip(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        for_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StepSeen> {
        let for_ms = checked_for_ms(for_ms).map_err(|error| error.raise(py))?;
        self.control(py, node, times(host, store), Control::Trip { for_ms })
    }

    fn force_open(&self, py: Python<'_>, node: &Node, host: Moment, store: Option<Moment>) -> PyResult<StepSeen> {
        self.control(py, node, times(host, store), Control::ForceOpen)
    }

    fn disable(&self, py: Python<'_>, node: &Node, host: Moment, store: Option<Moment>) -> PyResult<StepSeen> {
        self.control(py, node, times(host, store), Control::Disable)
    }

    fn on_reading(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        ticket: u64,
        fields: &Bound<'_, PyAny>,
    ) -> PyResult<StepSeen> {
        let at = times(host, store);
        let texts = read(fields);
        let taken = self.told(node, |engine, node| match &texts {
            Some([a, b, c, d, e]) => {
                let fields = [a.as_deref(), b.as_deref(), c.as_deref(), d.as_deref(), e.as_deref()];
                engine.on_reading(node, at, ticket, fields)
            }
            None => engine.on_reply(node, at, ticket, MALFORMED),
        });
        self.seen(py, taken)
    }

    fn on_reply(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        ticket: u64,
        reply: &Bound<'_, PyAny>,
    ) -> PyResult<StepSeen> {
        let at = times(host, store);
        let integers = reply.cast::<PyList>().ok().and_then(|reply| reply.extract::<Vec<i64>>().ok());
        let reply = integers.as_deref().unwrap_or(MALFORMED);
        let taken = self.told(node, |engine, node| engine.on_reply(node, at, ticket, reply));
        self.seen(py, taken)
    }

    fn on_error(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        ticket: u64,
        error: &Bound<'_, PyString>,
    ) -> PyResult<StepSeen> {
        let at = times(host, store);
        let error = error.to_string_lossy();
        let taken = self.told(node, |engine, node| engine.on_error(node, at, ticket, &error));
        self.seen(py, taken)
    }

    fn on_deadline(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        ticket: u64,
    ) -> PyResult<StepSeen> {
        let at = times(host, store);
        let taken = self.told(node, |engine, node| engine.on_deadline(node, at, ticket));
        self.seen(py, taken)
    }

    fn on_gone(&self, py: Python<'_>, host: Moment, store: Option<Moment>, ticket: u64) -> PyResult<StepSeen> {
        let at = times(host, store);
        let taken = {
            let mut desk = locked(&self.desk);
            let step = desk.engine.on_gone(at, ticket);
            desk.take(step)
        };
        self.seen(py, taken)
    }

    fn on_event(
        &self,
        py: Python<'_>,
        node: &Node,
        host: Moment,
        store: Option<Moment>,
        announcement: &Announcement,
    ) -> PyResult<StepSeen> {
        let at = times(host, store);
        let heard = &announcement.heard;
        let taken = self.told(node, |engine, node| {
            let transition = engine.on_event(node, at, heard).then_some(heard.transition);
            Step { transition, ..Step::default() }
        });
        self.seen(py, taken)
    }
}

/// The engines that were made so far, and one.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A reply that no command of ours gets.
const MALFORMED: &[i64] = &[];

fn times(host: Moment, store: Option<Moment>) -> Times {
    Times { host: host.0, store: store.map(|store| store.0) }
}

impl Circuit {
    /// Says from here on what need not be asked for; gives what tells it from the other engines of its process.
    pub fn feed(&self, standing: Standing) -> u64 {
        let mut desk = locked(&self.desk);
        desk.standing = Some(standing);
        desk.serial
    }

    fn asked(
        &self,
        py: Python<'_>,
        node: &Node,
        admits: bool,
        ask: impl FnOnce(&mut SharedCircuit, &mut switchgear_core::shared::Node) -> Begun,
    ) -> PyResult<Taken> {
        let mut desk = locked(&self.desk);
        let begun = ask(&mut desk.engine, &mut locked(&node.inner));
        desk.begun(py, begun, admits)
    }

    fn told(
        &self,
        node: &Node,
        tell: impl FnOnce(&mut SharedCircuit, &mut switchgear_core::shared::Node) -> Step,
    ) -> Taken {
        let mut desk = locked(&self.desk);
        let step = tell(&mut desk.engine, &mut locked(&node.inner));
        desk.take(step)
    }

    fn control(&self, py: Python<'_>, node: &Node, at: Times, control: Control) -> PyResult<StepSeen> {
        let taken = {
            let mut desk = locked(&self.desk);
            let begun = desk.engine.control(&mut locked(&node.inner), at, control);
            begun.map(|begun| desk.begun(py, begun, false))
        };
        self.seen(py, taken.map_err(|error| error.raise(py))??)
    }

    /// A command as the client takes it.
    fn ask(&self, py: Python<'_>, asked: &Asked) -> PyResult<Py<Ask>> {
        let Asked { ticket, command, by_text, delay_ms, args } = asked;
        let own = |word: &str| Cow::Owned(word.to_owned());
        let words = match *command {
            Command::Time => vec!["TIME".into()],
            Command::TryWrite => vec!["HDEL".into(), own(&self.routing_key), "".into()],
            Command::Run(Script::Admit) if self.reads_primary => ["HMGET".into(), own(&self.routing_key)]
                .into_iter()
                .chain(ADMISSION_FIELDS.map(Cow::Borrowed))
                .collect(),
            Command::Run(script) => {
                let shipped = &SCRIPTS[script as usize];
                let keys = &self.keys[script as usize];
                let head = if *by_text { ["EVAL", shipped.text] } else { ["EVALSHA", shipped.sha1] };
                head.map(Cow::Borrowed)
                    .into_iter()
                    .chain([keys.len().to_string().into()])
                    .chain(keys.iter().chain(args).map(|word| own(word)))
                    .collect()
            }
        };
        Py::new(
            py,
            Ask {
                ticket: *ticket,
                delay_ms: *delay_ms,
                reads: *command == Command::Run(Script::Admit),
                frees: *command == Command::Run(Script::Release),
                succeeds: *command == Command::Run(Script::RecordSuccess),
                words,
            },
        )
    }

    fn seen(&self, py: Python<'_>, taken: Taken) -> PyResult<StepSeen> {
        let Taken { step, ticket, flight, asks, former } = taken;
        drop(former);
        let Step { answer, others, transition, counted, config_mismatch, malformed, health } = step;
        let asks: Vec<Py<Ask>> = asks.iter().map(|ask| self.ask(py, ask)).collect::<PyResult<_>>()?;
        Ok(StepSeen {
            answer: answer.map(|answer| self.answer(py, answer)).transpose()?,
            ticket,
            flight,
            others: match others {
                Others::Share => "share",
                Others::AskAgain => "ask-again",
                Others::GoOn => "go-on",
            },
            asks: PyTuple::new(py, asks)?.unbind(),
            transition: transition.map(|t: Transition| Py::new(py, TransitionSeen::from(t))).transpose()?,
            counted,
            config_mismatch,
            malformed,
            health: health.map(|health| match health {
                Health::Degraded(whose) => ("degraded", word(whose)),
                Health::Restored(whose) => ("restored", word(whose)),
            }),
        })
    }

    fn answer(&self, py: Python<'_>, answer: Answer) -> PyResult<Py<PyAny>> {
        let word = |word: &str| Ok(PyString::intern(py, word).into_any().unbind());
        match answer {
            Answer::Granted(permit) => Ok(Py::new(py, SharedGrant::new(permit, self.success_is_free))?.into_any()),
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

const fn word(whose: Whose) -> &'static str {
    match whose {
        Whose::Node => "node",
        Whose::Circuit => "circuit",
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
