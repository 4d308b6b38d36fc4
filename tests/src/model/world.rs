//! A moment of a small fleet, and what may happen next.

use std::rc::Rc;

use switchgear_core::shared::{
    Announcement, Answer, Ask, Begun, Command, Control, Node, Others, PermitKind, Script, SharedOptions, SharedPermit,
    Step, Times,
};
use switchgear_core::{Config, Outcome};

use super::instance::{Instance, Running, Seat, TIMEOUT_MS, Waiting};
use super::part::Part;
use super::promises::Source;
use super::scenarios::Scenario;
use super::store::{Reply, Store};

/// A moment.
#[derive(Clone)]
pub struct World {
    pub(super) scenario: Rc<Scenario>,
    pub(super) config: Rc<Config>,
    pub(super) options: SharedOptions,
    /// The model's time, in milliseconds.
    pub(super) now: u64,
    /// Each circuit.
    pub(super) stores: Vec<Part<Store>>,
    /// Each server: whether it can be reached.
    pub(super) is_up: Vec<bool>,
    /// Each circuit of each process.
    pub(super) instances: Vec<Part<Instance>>,
    /// Servers as processes know them, also those that have been replaced.
    pub(super) nodes: Vec<Part<Node>>,
    pub(super) net: Vec<Part<Message>>,
    /// What was announced, and of which circuit.
    pub(super) events: Vec<(usize, Rc<str>)>,
    /// The probes of processes that died, and of which circuit: the dependency may still be at work on them.
    pub(super) orphans: Vec<(usize, Running)>,
    /// Whether a slot may have to time out: somebody has died, a probe's failure was not told, a replica was not told.
    pub(super) has_lost: bool,
    pub(super) left: Left,
    pub(super) nonces: u64,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Left {
    pub(super) calls: u32,
    pub(super) faults: u32,
    pub(super) ticks: u32,
    pub(super) hears: u32,
}

/// A command under way, or its reply.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) to: usize,
    nonce: u64,
    /// Where it was sent.
    node: usize,
    /// Whether the server that it was sent to is no more.
    is_lost: bool,
    pub(super) ask: Rc<Ask>,
    pub(super) reply: Option<Rc<Reply>>,
    /// The period that the store was in when it replied, by its place among all that there were.
    period: usize,
}

/// What may happen next. A message is named by its place among those under way.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// A process wants to call the dependency.
    Call(usize),
    /// One of its calls ends so.
    End(usize, usize, Outcome),
    /// A process says how a call ended that it had asked nobody for.
    Tell(usize, Outcome),
    /// An operator's.
    Control(usize, Control),
    /// A command arrives, and its reply.
    RoundTrip(usize),
    /// A command arrives; its reply takes longer.
    Arrive(usize),
    /// A reply arrives.
    Reply(usize),
    /// The connection breaks: the command or its reply is lost, and the client says so.
    Break(usize),
    /// The reply is lost, and the client sends the command again.
    Double(usize),
    /// The server does not know the script.
    NoScript(usize),
    /// A process hears an announcement, maybe late, maybe again.
    Hear(usize, usize),
    /// A process dies, and another takes its place.
    Crash(usize),
    /// A server forgets everything.
    Flush(usize),
    /// A server cannot be reached.
    GoDown(usize),
    /// It can be again.
    ComeBack(usize),
    /// Another server takes over what this one had, and the clients know; maybe without the last write.
    FailOver(usize, bool),
    /// So many milliseconds go by.
    Tick(u64),
}

impl World {
    /// The moment that a scenario begins with.
    ///
    /// # Errors
    /// What is wrong with the scenario, or a promise that its first steps break.
    pub fn new(scenario: Scenario) -> Result<Self, String> {
        let (config, options) = scenario.build()?;
        let now = 1_000_000;
        let left = Left { calls: 0, faults: 0, ticks: 0, hears: 0 };
        let mut world = Self {
            stores: Vec::new(),
            config: Rc::new(config),
            options,
            now,
            is_up: Vec::new(),
            instances: Vec::new(),
            nodes: Vec::new(),
            net: Vec::new(),
            events: Vec::new(),
            orphans: Vec::new(),
            has_lost: false,
            left,
            nonces: 0,
            scenario: Rc::new(scenario),
        };
        let seats = world.scenario.seats.clone();
        let count = |of: fn(&Seat) -> usize| seats.iter().map(of).max().map_or(0, |last| last + 1);
        let store = Store::new(&world.config, world.options.quorum, world.scenario.failovers, now);
        world.stores = vec![Part::new(store); count(|seat| seat.circuit)];
        world.is_up = vec![true; count(|seat| seat.server)];
        for &seat in &seats {
            let known = world.instances.iter().find(|other| is_at(other, seat.process, seat.server));
            let node = known.map_or(world.nodes.len(), |other| other.node);
            if node == world.nodes.len() {
                world.nodes.push(Part::new(Node::new()));
            }
            let instance = world.start(seat, node)?;
            world.instances.push(instance);
        }
        let scenario = Rc::clone(&world.scenario);
        (scenario.prelude)(&mut world)?;
        world.left = scenario.left;
        Ok(world)
    }

    fn start(&mut self, seat: Seat, node: usize) -> Result<Part<Instance>, String> {
        self.nonces += 1;
        let clock = *self.scenario.clocks.get(seat.process).ok_or("no such process")?;
        Ok(Part::new(Instance::new((self.nonces, seat, node), &self.config, self.options, clock)?))
    }

    /// What may happen next.
    pub fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for (place, instance) in self.instances.iter().enumerate() {
            if self.left.calls > 0 {
                all.push(Action::Call(place));
                all.extend(self.scenario.controls.iter().map(|&control| Action::Control(place, control)));
                all.extend(self.scenario.by_hand.iter().map(|&outcome| Action::Tell(place, outcome)));
            }
            for (call, running) in instance.running.iter().enumerate() {
                // Calls that are alike end alike.
                if call == 0 || instance.running.get(call - 1) != Some(running) {
                    all.extend(self.scenario.outcomes.iter().map(|&outcome| Action::End(place, call, outcome)));
                }
            }
            let is_first = self.instances.iter().position(|other| other.seat.process == instance.seat.process);
            if self.left.faults > 0 && self.scenario.crashes && is_first == Some(place) {
                all.push(Action::Crash(instance.seat.process));
            }
        }
        for (place, message) in self.net.iter().enumerate() {
            let is_up = self.arrives(message);
            match message.reply {
                Some(_) => all.push(Action::Reply(place)),
                None if is_up => all.push(Action::RoundTrip(place)),
                None => {}
            }
            if self.left.faults > 0 && message.reply.is_none() && is_up {
                all.extend([Action::Arrive(place), Action::Double(place)]);
                if matches!(message.ask.command, Command::Run(_)) && !message.ask.by_text {
                    all.push(Action::NoScript(place));
                }
            }
            if self.left.faults > 0 || !is_up {
                all.push(Action::Break(place));
            }
        }
        if self.left.hears > 0 {
            for (place, instance) in self.instances.iter().enumerate() {
                let is_its_own = |&(_, (circuit, _)): &(usize, &(usize, Rc<str>))| *circuit == instance.seat.circuit;
                let events = self.events.iter().enumerate().filter(is_its_own);
                all.extend(events.map(|(event, _)| Action::Hear(place, event)));
            }
        }
        for (server, is_up) in self.is_up.iter().enumerate() {
            if self.left.faults > 0 {
                all.push(Action::Flush(server));
                if *is_up {
                    all.push(Action::GoDown(server));
                }
                if self.scenario.failovers {
                    all.push(Action::FailOver(server, false));
                    if self
                        .circuits_of(server)
                        .any(|circuit| self.stores.get(circuit).is_some_and(|store| store.lags()))
                    {
                        all.push(Action::FailOver(server, true));
                    }
                }
            }
            if !is_up {
                all.push(Action::ComeBack(server));
            }
        }
        if self.left.ticks > 0 {
            all.extend(self.scenario.ticks.iter().map(|&ms| Action::Tick(ms)));
        }
        all
    }

    /// Does it.
    ///
    /// # Errors
    /// The promise that this broke.
    pub fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Call(place) => {
                self.left.calls = self.left.calls.saturating_sub(1);
                self.call(place)?;
            }
            Action::End(place, call, outcome) => self.end(place, call, outcome)?,
            Action::Tell(place, outcome) => {
                self.left.calls = self.left.calls.saturating_sub(1);
                self.tell(place, None, outcome)?;
            }
            Action::Control(place, control) => {
                self.left.calls = self.left.calls.saturating_sub(1);
                self.control(place, control)?;
            }
            Action::RoundTrip(place) => {
                self.arrive(place, false)?;
                self.reply(place)?;
            }
            Action::Arrive(place) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.arrive(place, false)?;
            }
            Action::Double(place) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.arrive(place, true)?;
            }
            Action::Reply(place) => self.reply(place)?,
            Action::Break(place) => {
                if self.net.get(place).is_some_and(|message| self.arrives(message)) {
                    self.left.faults = self.left.faults.saturating_sub(1);
                }
                self.error(place, "Connection is closed.")?;
            }
            Action::NoScript(place) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.error(place, "NOSCRIPT No matching script.")?;
            }
            Action::Hear(place, event) => self.hear(place, event)?,
            Action::Crash(process) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.crash(process)?;
            }
            Action::Flush(server) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.each_store(server, |store, now| store.forget(now));
            }
            Action::GoDown(server) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.is_up[server] = false;
            }
            Action::ComeBack(server) => self.is_up[server] = true,
            Action::FailOver(server, loses) => {
                self.left.faults = self.left.faults.saturating_sub(1);
                self.fail_over(server, loses);
            }
            Action::Tick(ms) => {
                self.left.ticks = self.left.ticks.saturating_sub(1);
                self.go_on(ms)?;
            }
        }
        self.settle_net();
        self.check()
    }

    /// Messages in an order that does not tell how they came about.
    fn settle_net(&mut self) {
        self.net.sort_by_key(|message| (message.to, message.nonce, message.ask.ticket));
    }

    /// Whether a command gets where it was sent.
    fn arrives(&self, message: &Message) -> bool {
        let server = self.instances.get(message.to).map(|instance| instance.seat.server);
        !message.is_lost && server.is_some_and(|server| self.is_up.get(server) == Some(&true))
    }

    fn circuits_of(&self, server: usize) -> impl Iterator<Item = usize> {
        (0..self.stores.len()).filter(move |&circuit| {
            self.instances.iter().any(|instance| instance.seat.circuit == circuit && instance.seat.server == server)
        })
    }

    fn each_store(&mut self, server: usize, act: fn(&mut Store, u64)) {
        let circuits: Vec<usize> = self.circuits_of(server).collect();
        for circuit in circuits {
            act(self.stores[circuit].edit(), self.now);
        }
    }

    fn crash(&mut self, process: usize) -> Result<(), String> {
        self.has_lost = true;
        for place in 0..self.instances.len() {
            let dead = self.instances[place].clone();
            if dead.seat.process != process {
                continue;
            }
            let probes = dead.running.iter().filter(|call| call.permit.kind == PermitKind::Probe);
            self.orphans.extend(probes.map(|call| (dead.seat.circuit, call.clone())));
            self.nodes[dead.node] = Part::new(Node::new());
            self.instances[place] = self.start(dead.seat, dead.node)?;
        }
        Ok(())
    }

    /// What is under way is lost, and what a process knew of the server is no news of the other one.
    fn fail_over(&mut self, server: usize, loses: bool) {
        if loses {
            self.has_lost = true;
            self.each_store(server, Store::fall_back);
        }
        self.is_up[server] = true;
        for message in &mut self.net {
            if message.reply.is_none() && self.instances[message.to].seat.server == server {
                message.edit().is_lost = true;
            }
        }
        for place in 0..self.instances.len() {
            let (seat, old) = (self.instances[place].seat, self.instances[place].node);
            if seat.server != server {
                continue;
            }
            let others = self.instances.iter().take(place);
            let node = others.rev().find(|other| is_at(other, seat.process, server)).map(|other| other.node);
            let node = node.unwrap_or_else(|| {
                self.nodes[old].edit().replaced();
                self.nodes.push(Part::new(Node::new()));
                self.nodes.len() - 1
            });
            self.instances[place].edit().node = node;
        }
    }

    pub(super) fn instance(&self, place: usize) -> Result<&Instance, String> {
        self.instances.get(place).map(|instance| &**instance).ok_or_else(|| "no such process".to_owned())
    }

    pub(super) fn instance_mut(&mut self, place: usize) -> Result<&mut Instance, String> {
        self.instances.get_mut(place).map(Part::edit).ok_or_else(|| "no such process".to_owned())
    }

    /// The circuit that this one is about, in the store.
    pub(super) fn store(&self, place: usize) -> Result<&Store, String> {
        let circuit = self.instance(place)?.seat.circuit;
        self.stores.get(circuit).map(|store| &**store).ok_or_else(|| "no such circuit".to_owned())
    }

    /// A process, the server as it knows it, and the time as it sees it.
    fn at(&mut self, place: usize) -> Result<(&mut Instance, &mut Node, Times), String> {
        let node = self.instance(place)?.node;
        self.at_node(place, node)
    }

    fn at_node(&mut self, place: usize, node: usize) -> Result<(&mut Instance, &mut Node, Times), String> {
        let now = self.now;
        let instance = self.instances.get_mut(place).map(Part::edit).ok_or("no such process")?;
        let node = self.nodes.get_mut(node).map(Part::edit).ok_or("no such server")?;
        let at = instance.times(now);
        Ok((instance, node, at))
    }

    pub(super) fn call(&mut self, place: usize) -> Result<(), String> {
        let now = self.now;
        let (instance, node, at) = self.at(place)?;
        let is_asked = node.is_asked();
        let begun = instance.circuit.admit(node, at);
        match begun {
            Begun::Answered(step) => {
                let source = if is_asked { Source::Known } else { Source::Away };
                self.answered(place, &step, source)?;
            }
            Begun::Wait(ticket) => {
                instance.waiting.insert(ticket, Waiting::Admission { joined: 0, since: now });
                instance.deadlines.insert(ticket, (at.host.get() + TIMEOUT_MS, instance.node));
            }
            Begun::Join(ticket) if ticket < instance.last_word => {
                return Err("joined a flight that left before what this process told last".into());
            }
            Begun::Join(ticket) => match instance.waiting.get_mut(&ticket) {
                Some(Waiting::Admission { joined, .. }) => *joined += 1,
                other => return Err(format!("joined to {other:?}")),
            },
        }
        self.send(place)
    }

    fn end(&mut self, place: usize, call: usize, outcome: Outcome) -> Result<(), String> {
        let instance = self.instance_mut(place)?;
        if call >= instance.running.len() {
            return Err("no such call".into());
        }
        let Running { permit, .. } = instance.running.remove(call);
        self.tell(place, Some(permit), outcome)
    }

    fn tell(&mut self, place: usize, permit: Option<SharedPermit>, outcome: Outcome) -> Result<(), String> {
        let (instance, node, at) = self.at(place)?;
        let begun = instance.circuit.settle(node, at, permit, outcome);
        match begun {
            Begun::Answered(step) => self.settled(place, permit, outcome, &step, Source::Away)?,
            Begun::Wait(ticket) => {
                instance.last_word = ticket;
                instance.waiting.insert(ticket, Waiting::Settlement { permit, outcome });
                instance.deadlines.insert(ticket, (at.host.get() + TIMEOUT_MS, instance.node));
            }
            Begun::Join(_) => return Err("an outcome joined a flight".into()),
        }
        self.send(place)
    }

    fn control(&mut self, place: usize, control: Control) -> Result<(), String> {
        let (instance, node, at) = self.at(place)?;
        match instance.circuit.control(node, at, control).map_err(|error| error.to_string())? {
            Begun::Wait(ticket) => {
                instance.waiting.insert(ticket, Waiting::Control);
                instance.deadlines.insert(ticket, (at.host.get() + TIMEOUT_MS, instance.node));
            }
            other => return Err(format!("an operation was not told: {other:?}")),
        }
        self.send(place)
    }

    /// Sends what is to be sent.
    fn send(&mut self, place: usize) -> Result<(), String> {
        let (instance, _, at) = self.at(place)?;
        let nonce = instance.nonce;
        let mut messages = Vec::new();
        while let Some(ask) = instance.circuit.next_ask() {
            let due = (at.host.get() + TIMEOUT_MS, instance.node);
            let (_, node) = *instance.deadlines.entry(ask.ticket).or_insert(due);
            let ask = Rc::new(ask);
            messages.push(Message { to: place, nonce, node, is_lost: false, ask, reply: None, period: 0 });
        }
        self.net.extend(messages.into_iter().map(Part::new));
        Ok(())
    }

    /// Tells a process from the one that had its place before it died.
    fn nonce(&self, place: usize) -> Result<u64, String> {
        Ok(self.instance(place)?.nonce)
    }

    fn arrive(&mut self, place: usize, again: bool) -> Result<(), String> {
        let message = self.net.get(place).ok_or("no such message")?.clone();
        let reply = self.execute(&message)?;
        let period = self.store(message.to)?.past.len() - 1;
        if !again && let Some(message) = self.net.get_mut(place) {
            let message = message.edit();
            message.reply = Some(Rc::new(reply));
            message.period = period;
        }
        Ok(())
    }

    fn execute(&mut self, message: &Message) -> Result<Reply, String> {
        let now = self.now;
        let circuit = self.instance(message.to)?.seat.circuit;
        let store = self.stores.get_mut(circuit).ok_or("no such circuit")?;
        match message.ask.command {
            Command::Run(Script::Admit) => Ok(store.read()),
            Command::Run(script) => {
                let epoch = store.past.last().map_or(0, |period| period.epoch);
                let done = store.edit().run(now, script, &message.ask.args);
                self.executed(script, &message.ask.args, epoch, done.counted)?;
                if let Some(announcement) = done.announcement {
                    self.events.push((circuit, announcement.into()));
                }
                Ok(done.reply)
            }
            Command::Time => {
                let (seconds, millis) = (now / 1000, now % 1000);
                Ok(Reply::Integers([seconds, millis * 1000].map(|n| i64::try_from(n).unwrap_or(0)).to_vec()))
            }
            Command::TryWrite => Ok(Reply::Integers(vec![0])),
        }
    }

    fn reply(&mut self, place: usize) -> Result<(), String> {
        if place >= self.net.len() {
            return Err("no such message".into());
        }
        let message = self.net.remove(place);
        let Some(reply) = &message.reply else { return Err("no reply".into()) };
        if self.nonce(message.to)? != message.nonce {
            return Ok(());
        }
        let ticket = message.ask.ticket;
        let (instance, node, at) = self.at_node(message.to, message.node)?;
        if matches!(message.ask.command, Command::Run(_)) {
            instance.heard = instance.heard.max(message.period);
        }
        let (step, source) = match &**reply {
            Reply::Reading(fields) => {
                let epoch = fields[2].as_deref().and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
                instance.told = instance.told.max(epoch);
                let fields = fields.each_ref().map(Option::as_deref);
                (instance.circuit.on_reading(node, at, ticket, fields), Source::Store { moved: false })
            }
            Reply::Integers(integers) => {
                let is_script = matches!(message.ask.command, Command::Run(_));
                if let Some(&epoch) = integers.get(3).filter(|_| is_script) {
                    instance.told = instance.told.max(u64::try_from(epoch).unwrap_or(0));
                }
                let moved = is_script && integers.get(5).is_some_and(|&from| from >= 0);
                (instance.circuit.on_reply(node, at, ticket, integers), Source::Store { moved })
            }
        };
        self.told(message.to, ticket, &step, source)
    }

    fn error(&mut self, place: usize, error: &str) -> Result<(), String> {
        if place >= self.net.len() {
            return Err("no such message".into());
        }
        let message = self.net.remove(place);
        if self.nonce(message.to)? != message.nonce {
            return Ok(());
        }
        let ticket = message.ask.ticket;
        let (instance, node, at) = self.at_node(message.to, message.node)?;
        let step = instance.circuit.on_error(node, at, ticket, error);
        self.told(message.to, ticket, &step, Source::Away)
    }

    fn hear(&mut self, place: usize, event: usize) -> Result<(), String> {
        self.left.hears = self.left.hears.saturating_sub(1);
        let (_, message) = self.events.get(event).ok_or("no such announcement")?;
        let heard = Announcement::parse(message).ok_or_else(|| format!("not understood: {message}"))?;
        let (instance, node, at) = self.at(place)?;
        instance.announced = instance.announced.max(heard.transition.epoch);
        instance.circuit.on_event(node, at, &heard);
        self.send(place)
    }

    /// Time goes on, and each deadline passes when it is due.
    fn go_on(&mut self, ms: u64) -> Result<(), String> {
        let end = self.now + ms;
        loop {
            let due = self.instances.iter().enumerate().flat_map(|(place, instance)| {
                let host = instance.clock.host;
                instance.deadlines.iter().map(move |(&ticket, &(due, node))| (due - host, place, ticket, node))
            });
            let Some((due, place, ticket, node)) = due.min().filter(|&(due, ..)| due <= end) else { break };
            self.now = self.now.max(due);
            let (instance, node, at) = self.at_node(place, node)?;
            instance.deadlines.remove(&ticket);
            let step = instance.circuit.on_deadline(node, at, ticket);
            self.told(place, ticket, &step, Source::Away)?;
            if self.instance(place)?.waiting.contains_key(&ticket) {
                return Err(format!("nothing at the deadline of {ticket}"));
            }
        }
        self.now = end;
        Ok(())
    }

    /// What came of a ticket.
    fn told(&mut self, place: usize, ticket: u64, step: &Step, source: Source) -> Result<(), String> {
        if step.answer.is_some() {
            let instance = self.instance_mut(place)?;
            let waiting = instance.waiting.remove(&ticket).ok_or("an answer that nobody waits for")?;
            match waiting {
                Waiting::Settlement { permit, outcome } => self.settled(place, permit, outcome, step, source)?,
                Waiting::Control => {}
                Waiting::Admission { joined, since } => {
                    let source = match (source, step.others) {
                        // It was read, but the script that decides could not be sent.
                        (_, Others::GoOn) => Source::Away,
                        (Source::Store { .. }, _) => Source::Asked { since },
                        _ => source,
                    };
                    self.answered(place, step, source)?;
                    self.send(place)?;
                    for _ in 0..joined {
                        match step.others {
                            Others::Share => self.answered(place, step, source)?,
                            Others::AskAgain => self.call(place)?,
                            Others::GoOn => {
                                let (instance, _, at) = self.at(place)?;
                                let step = instance.circuit.admit_unasked(at);
                                self.answered(place, &step, Source::Away)?;
                            }
                        }
                    }
                }
            }
        }
        self.send(place)?;
        let nonce = self.nonce(place)?;
        let is_under_way = |message: &Part<Message>| message.nonce == nonce && message.ask.ticket == ticket;
        if !self.net.iter().any(is_under_way) {
            let instance = self.instance_mut(place)?;
            instance.deadlines.remove(&ticket);
            if instance.waiting.contains_key(&ticket) {
                return Err(format!("nothing will ever answer {ticket}"));
            }
        }
        Ok(())
    }

    /// An admission has its answer.
    fn answered(&mut self, place: usize, step: &Step, source: Source) -> Result<(), String> {
        match step.answer {
            Some(Answer::Granted(permit)) => self.granted(place, permit, source),
            Some(Answer::Refused { retry_after, .. }) => self.refused(place, retry_after, source),
            Some(Answer::Unavailable) if matches!(source, Source::Away) => Ok(()),
            other => Err(format!("an admission was answered with {other:?}")),
        }
    }

    /// The call goes ahead.
    pub(super) fn run(&mut self, place: usize, permit: SharedPermit) -> Result<(), String> {
        let now = self.now;
        let running = &mut self.instance_mut(place)?.running;
        running.push(Running { permit, since: now });
        running.sort_by_key(|call| (call.permit.epoch, call.permit.id.counter, call.since));
        Ok(())
    }
}

fn is_at(instance: &Instance, process: usize, server: usize) -> bool {
    instance.seat.process == process && instance.seat.server == server
}
