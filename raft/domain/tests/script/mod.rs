//! The language of the scripts.

mod base;
mod meetings;
mod project_queries;
mod projects;
mod queries;
mod work;

use std::error::Error;
use std::fmt::Write as _;

use goldenscript::ArgumentConsumer;
use nexus_domain::command::{ClusterCommand, Command, SystemCommand};
use nexus_domain::{
    Actor, Answered, Entry, Event, MemoryStore, Overlay, Proposal, RequestId, Stamp, apply,
    cluster, codec, digest, due, invariants, limits,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Hints that are shown of one entry.
const HINTS_MAX: usize = 3;

/// Runs scripts.
///
/// A command of the state machine is written `name arguments`, with these keys where the usual does
/// not do: `node=` (1), `as=` (who speaks; `node` for the node itself), `req=` (a client's id),
/// `boot=` and `n=` (a node's own id; else its present boot and the next one), `below=` (what is
/// answered, of `abboot=`), `version=`, `until=` (the tick after which it is too late), `index=`.
/// Time stands still but for `pass`. Messages are in the global chat but for `in=` (a meeting).
/// After each the invariants must hold, and a refusal must not have touched the content.
#[derive(Debug)]
pub(crate) struct Runner {
    store: MemoryStore,
    index: u64,
    tick: u64,
    at: u64,
    counter: u64,
    repeating: bool,
}

impl Default for Runner {
    fn default() -> Self {
        Self {
            store: MemoryStore::default(),
            index: 2,
            tick: 0,
            at: 1_000_000,
            counter: 0,
            repeating: false,
        }
    }
}

impl goldenscript::Runner for Runner {
    type Command = goldenscript::Command;

    fn run(
        &mut self,
        command: &goldenscript::Command,
        _context: &goldenscript::Context,
    ) -> Result<String> {
        let mut args = command.consume_args();
        if let Some(output) = queries::run(&self.store, &command.name, &mut args)? {
            args.reject_next()?;
            return Ok(output);
        }
        let output = match command.name.as_str() {
            "pass" => {
                let millis: u64 = position(&mut args, "milliseconds")?;
                self.tick = self.tick.saturating_add(millis);
                self.at = self.at.saturating_add(millis);
                String::new()
            }
            "clock-back" => {
                self.tick = self.tick.saturating_sub(1_000);
                self.at = self.at.saturating_sub(1_000);
                String::new()
            }
            "cluster" => self.cluster()?,
            "times" => self.times(&mut args)?,
            "fire-due" => self.fire_due()?,
            name => {
                let entry = self.entry(name, &mut args)?;
                self.apply(&entry)?
            }
        };
        args.reject_next()?;
        Ok(output)
    }
}

impl Runner {
    /// Makes a cluster of node 1, the beginning of most scripts.
    fn cluster(&mut self) -> Result<String> {
        let entry = self.propose(found("c1", "alpha"))?;
        self.apply(&entry)?;
        let entry = self.propose(started(1, 11))?;
        self.apply(&entry)
    }

    /// Repeats a command; shows the last answer.
    fn times(&mut self, args: &mut ArgumentConsumer<'_>) -> Result<String> {
        let count: u64 = position(args, "count")?;
        let name = args.next_pos().ok_or("a command must be given")?;
        let all: Vec<_> = args.collect();
        let mut output = String::new();
        for number in 0..count {
            let mut words = vec![name.to_string()];
            words.extend(all.iter().map(|word| word.to_string().replace('%', &number.to_string())));
            let parsed = parse(&words.join(" "))?;
            let mut args = parsed.consume_args();
            let entry = self.entry(name, &mut args)?;
            // A scan for each of thousands would take minutes.
            self.repeating = number + 1 < count;
            output = self.apply(&entry)?;
        }
        Ok(output)
    }

    /// Fires everything that is due now, and what that makes due; shows each answer.
    fn fire_due(&mut self) -> Result<String> {
        let mut output = String::new();
        while let Some(first) = due::first(&self.store)?.filter(|first| first.due <= self.tick) {
            let (due, kind, id, generation) = (first.due, first.kind, first.id, first.generation);
            write!(output, "{kind:?} {id}: ")?;
            let fire = SystemCommand::Fire { due, kind, id, generation };
            let entry = self.propose(Command::System(fire))?;
            output.push_str(&self.apply(&entry)?);
        }
        Ok(output)
    }

    fn propose(&mut self, command: Command) -> Result<Entry> {
        self.wrap(command, &mut parse("x")?.consume_args())
    }

    /// Reads a command with the keys that every command has.
    fn entry(&mut self, name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Entry> {
        let speaker = args.take_key("as").map(str::to_string);
        let Some(command) = base::command(&self.store, name, args)? else {
            return Err(format!("{name} is no command").into());
        };
        let mut entry = self.wrap(command, args)?;
        match speaker.as_deref() {
            Some("node") => entry.proposal.actor = Actor::Node,
            Some(id) => entry.proposal.actor = Actor::Conversation(id.into()),
            None => {}
        }
        Ok(entry)
    }

    fn wrap(&mut self, command: Command, args: &mut ArgumentConsumer<'_>) -> Result<Entry> {
        let node = key(args, "node")?.unwrap_or(1);
        let known = cluster::member(&self.store, node)?.map_or(1, |member| member.boot.max(1));
        let boot = key(args, "boot")?.unwrap_or(known);
        let counter = match key(args, "n")? {
            Some(counter) => counter,
            None => {
                self.counter += 1;
                1_000_000 + self.counter
            }
        };
        let request = match args.take_key("req") {
            Some(id) => RequestId::Client(id.into()),
            None => RequestId::Node { node: key(args, "of")?.unwrap_or(node), boot, counter },
        };
        let answered = Answered {
            boot: key(args, "abboot")?.unwrap_or(boot),
            below: key(args, "below")?.unwrap_or(0),
        };
        let proposal = Proposal {
            version: key(args, "version")?.unwrap_or(1),
            request,
            actor: Actor::Node,
            answered,
            not_after: key(args, "until")?.unwrap_or(u64::MAX),
            command,
        };
        let index = key(args, "index")?.unwrap_or(self.index);
        self.index = self.index.max(index) + 1;
        Ok(Entry { index, stamp: Stamp { tick: self.tick, at: self.at, node }, proposal })
    }

    /// Applies an entry as a batch of its own; its bytes give it back, too.
    fn apply(&mut self, entry: &Entry) -> Result<String> {
        let bytes = codec::encode_entry(&entry.stamp, &entry.proposal);
        if entry.proposal.version <= nexus_domain::SUPPORTED {
            assert_eq!(&codec::decode_entry(entry.index, &bytes)?, entry);
        }
        let before = digest::read(&self.store)?;
        let mut overlay = Overlay::new(&self.store);
        let mut events = Vec::new();
        let outcome = apply(&mut overlay, entry, &mut events)?;
        digest::seal(&mut overlay, entry.index)?;
        let changes = overlay.into_changes();
        // Records of requests are swept beside; the digests are no rows of anybody.
        let rows = changes.keys().filter(|key| matches!(key.first(), Some(0x08 | 0x10..)));
        check_bounds(entry, rows.count(), &outcome);
        self.store.absorb(changes);
        if !self.repeating {
            let found = invariants::check(&self.store)?;
            assert!(found.is_empty(), "after {entry:?}: {found:#?}");
        }
        let same = digest::read(&self.store)?.content == before.content;
        let mut output = String::new();
        match outcome {
            Ok(reply) => {
                write!(output, "{reply:?}")?;
                if same {
                    output.push_str(" (no content changed)");
                }
            }
            Err(refusal) => {
                // The timer of the kept answer is the only thing that a refusal may set.
                let silent = events.iter().all(|event| *event == Event::Due);
                assert!(same && silent, "{refusal} left a trace: {events:?}");
                write!(output, "{}: {refusal}", refusal.code())?;
            }
        }
        for event in events.iter().take(HINTS_MAX) {
            write!(output, "\n  hint {event:?}")?;
        }
        if events.len() > HINTS_MAX {
            write!(output, "\n  and {} hints more", events.len() - HINTS_MAX)?;
        }
        output.push('\n');
        Ok(output)
    }
}

/// Checks that an entry changes no more rows than it may, and that its answer can be kept.
fn check_bounds(
    entry: &Entry,
    rows: usize,
    outcome: &std::result::Result<nexus_domain::Reply, nexus_domain::Rejection>,
) {
    let fires = matches!(entry.proposal.command, Command::System(SystemCommand::Fire { .. }));
    let most = if fires { limits::FIRE_ROWS_MAX } else { limits::COMMAND_ROWS_MAX };
    assert!(rows <= most, "{rows} rows are changed by {entry:?}");
    let kept = match outcome {
        Ok(reply) => codec::encode_value(reply),
        Err(refusal) => codec::encode_value(refusal),
    };
    assert!(kept.len() <= limits::OUTCOME_BYTES_MAX, "{outcome:?} has {} bytes", kept.len());
}

/// Reads a line as a command, for those that are made here.
fn parse(line: &str) -> Result<goldenscript::Command> {
    struct Catch(Option<goldenscript::Command>);
    impl goldenscript::Runner for Catch {
        type Command = goldenscript::Command;
        fn run(
            &mut self,
            command: &goldenscript::Command,
            _context: &goldenscript::Context,
        ) -> Result<String> {
            self.0 = Some(command.clone());
            Ok(String::new())
        }
    }
    let mut catch = Catch(None);
    goldenscript::generate(&mut catch, &format!("{line}\n---\n"))?;
    catch.0.ok_or_else(|| format!("{line} is no command").into())
}

/// Returns the value of a key.
pub(crate) fn key<T: std::str::FromStr>(
    args: &mut ArgumentConsumer<'_>,
    name: &str,
) -> Result<Option<T>>
where
    T::Err: Error + 'static,
{
    Ok(args.take_key(name).map(str::parse).transpose()?)
}

/// Returns the next argument without a key.
pub(crate) fn position<T: std::str::FromStr>(
    args: &mut ArgumentConsumer<'_>,
    name: &str,
) -> Result<T>
where
    T::Err: Error + 'static,
{
    Ok(args.next_pos().ok_or_else(|| format!("{name} must be given"))?.parse()?)
}

/// Writes a long text shortly: `ü*300` is three hundred of them.
fn text(word: &str) -> String {
    match word.rsplit_once('*') {
        Some((part, count)) => {
            count.parse().map_or_else(|_| word.into(), |count| part.repeat(count))
        }
        None => word.into(),
    }
}

fn found(cluster: &str, name: &str) -> Command {
    Command::Cluster(ClusterCommand::Found {
        cluster: cluster.into(),
        authority: vec![1; 9],
        public_key: b"first key".into(),
        name: name.into(),
        host: "machine".into(),
    })
}

fn started(boot: u64, nonce: u64) -> Command {
    Command::System(SystemCommand::Started { boot, nonce, supports: 1, software: "0.1.0".into() })
}
