//! Nodes die without a word under load, one after another, and nothing that was answered is lost,
//! doubled or in another order anywhere.
//!
//! 40 rounds, or as many as `NEXUS_TEST_ROUNDS` says; `NEXUS_TEST_SEED` repeats a run's choices.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nexus_rt::{Backoff, Jobs};
use nexus_tests::call::{As, Failed, Http};
use nexus_tests::process::{LIMIT, Node, agree, three_voters};
use nexus_tests::wait;
use serde_json::json;
use tokio::time::Instant;

const ROUNDS: u64 = 40;
/// Writers that call again under the same request id until they are answered.
const PATIENT: usize = 4;
/// Writers that never call again: what was not answered may or may not be there.
const IMPATIENT: usize = 2;
/// Calls of one instance: the log keeps at most 1,000 of its request ids in a day.
const CALLS: u64 = 900;
/// Until a call that is tried again must have been answered: several failovers in a row.
const ANSWERED: Duration = Duration::from_secs(60);

fn number(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

/// A small generator with a seed (splitmix64): the same seed gives the same choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What the writers know.
#[derive(Default)]
struct Ledger {
    /// Text → the number that the answer gave it.
    answered: Mutex<BTreeMap<String, u64>>,
    /// Texts that were sent once and not answered.
    unknown: Mutex<Vec<String>>,
    /// Texts that were refused with a code that says that nothing was done.
    refused: Mutex<Vec<String>>,
    /// How many calls were sent again.
    again: AtomicU64,
    stop: AtomicBool,
    /// Where the nodes serve now.
    nodes: Mutex<Vec<Http>>,
    /// The first answer that must never come.
    wrong: Mutex<Option<String>>,
}

impl Ledger {
    fn answers(&self) -> usize {
        self.answered.lock().unwrap().len()
    }

    fn node(&self, number: usize) -> Http {
        let nodes = self.nodes.lock().unwrap();
        nodes[number % nodes.len()].clone()
    }

    fn enter(&self, text: String, message: &serde_json::Value) {
        match message["messageId"].as_u64() {
            Some(id) => {
                self.answered.lock().unwrap().insert(text, id);
            }
            None => self.fail(format!("{text}: an answer without a number: {message}")),
        }
    }

    fn fail(&self, text: String) {
        self.wrong.lock().unwrap().get_or_insert(text);
        self.stop.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn check(&self) {
        let wrong = self.wrong.lock().unwrap().clone();
        assert_eq!(wrong, None, "an answer that must never come");
    }
}

/// Calls again, anywhere, until it is answered.
async fn patient(ledger: Arc<Ledger>, own: usize) {
    let mut at = own;
    for count in 0_u64.. {
        let instance = format!("patient-{own}-{}", count / CALLS);
        let text = format!("patient-{own} {count}");
        let request = format!("{instance}-{count}");
        let since = Instant::now();
        let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(200));
        let mut last = String::new();
        loop {
            if since.elapsed() > ANSWERED {
                return ledger.fail(format!("{text}: not answered in {ANSWERED:?}, last {last}"));
            }
            let who = As { instance: &instance, request: Some(&request) };
            let args = json!({"message": text});
            match ledger.node(at).call("send_message", args, who).await {
                Ok(message) => {
                    ledger.enter(text, &message);
                    break;
                }
                // Another call of the same conversation may have moved it meanwhile.
                Err(failed) if failed.may_pass() || failed.code() == "not_here" => {
                    ledger.again.fetch_add(1, Ordering::Relaxed);
                    last = failed.to_string();
                    at += 1;
                    tokio::time::sleep(backoff.next()).await;
                }
                Err(failed) => return ledger.fail(format!("{text}: {failed}")),
            }
        }
        if ledger.is_over() {
            return;
        }
    }
}

/// Calls once, and believes nothing that was not answered.
async fn impatient(ledger: Arc<Ledger>, own: usize) {
    let instance = format!("impatient-{own}");
    let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
    for count in 0_usize.. {
        if ledger.is_over() {
            return;
        }
        let text = format!("{instance} {count}");
        let who = As { instance: &instance, request: None };
        let args = json!({"message": text});
        // It stays where it is for a while, since a conversation that moves is registered anew.
        match ledger.node(own + count / 50).call("send_message", args, who).await {
            Ok(message) => {
                backoff.reset();
                ledger.enter(text, &message);
            }
            Err(failed) => {
                let certain = failed.is_certain();
                match failed {
                    Failed::Refused { .. } if !failed.may_pass() => {
                        return ledger.fail(format!("{text}: {failed}"));
                    }
                    Failed::Refused { .. } | Failed::Lost(_) => {}
                }
                let list = if certain { &ledger.refused } else { &ledger.unknown };
                list.lock().unwrap().push(text);
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
}

/// One round: some traffic, a kill, traffic without the dead node, its return.
async fn round(ledger: &Ledger, nodes: &mut [Node], choices: &mut Choices) -> Duration {
    let enough = ledger.answers() + usize::try_from(1 + choices.below(60)).unwrap();
    more_answers(ledger, enough).await;
    let victim = usize::try_from(choices.below(3)).unwrap();
    nodes[victim].kill();
    let since = Instant::now();
    // The answers under way when it died count for nothing: the next ones are of the others.
    let enough = ledger.answers() + PATIENT + IMPATIENT + 1;
    more_answers(ledger, enough).await;
    let gap = since.elapsed();
    nodes[victim].start(&[]).await;
    ledger.nodes.lock().unwrap()[victim] = nodes[victim].http().clone();
    wait::until("the node's return", LIMIT, async || nodes[victim].http().get("/ready").await)
        .await;
    gap
}

async fn more_answers(ledger: &Ledger, enough: usize) {
    wait::until("more answers", LIMIT, async || {
        ledger.check();
        let answers = ledger.answers();
        if answers >= enough { Ok(()) } else { Err(format!("{answers} of {enough}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_answered_is_there_once_everywhere_in_one_order() {
    let rounds = number("NEXUS_TEST_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("NEXUS_TEST_SEED")
        .unwrap_or_else(|| u64::from_le_bytes(nexus_rt::unique_bytes::<8>()));
    eprintln!(
        "to repeat: NEXUS_TEST_SEED={seed} NEXUS_TEST_ROUNDS={rounds} cargo test -p nexus-tests \
         --test kills"
    );
    let mut choices = Choices(seed);
    let mut nodes = three_voters(["one", "two", "three"]).await;
    let jobs = Jobs::new();
    let ledger = Arc::new(Ledger::default());
    *ledger.nodes.lock().unwrap() = nodes.iter().map(|node| node.http().clone()).collect();
    for own in 0..PATIENT {
        jobs.spawn("patient", patient(Arc::clone(&ledger), own));
    }
    for own in 0..IMPATIENT {
        jobs.spawn("impatient", impatient(Arc::clone(&ledger), own));
    }
    let since = Instant::now();
    let mut gaps = Vec::new();
    for _ in 0..rounds {
        gaps.push(round(&ledger, &mut nodes, &mut choices).await);
    }
    ledger.stop.store(true, Ordering::Release);
    let left = jobs.shutdown(ANSWERED + LIMIT).await;
    assert!(left.is_empty(), "writers still wait for an answer: {left:?}");
    ledger.check();
    gaps.sort();
    let took = since.elapsed();
    let all: Vec<&Node> = nodes.iter().collect();
    let digest = agree(&all, LIMIT).await;
    verify(&ledger, &nodes).await;
    eprintln!(
        "{rounds} rounds in {:.1} s: {} answered, {} sent again, {} unknown, {} refused; longest \
         gap after a kill {} ms, median {} ms; content {digest}",
        took.as_secs_f32(),
        ledger.answers(),
        ledger.again.load(Ordering::Relaxed),
        ledger.unknown.lock().unwrap().len(),
        ledger.refused.lock().unwrap().len(),
        gaps.last().unwrap().as_millis(),
        gaps[gaps.len() / 2].as_millis(),
    );
}

/// Holds what the writers were told against what each node has.
async fn verify(ledger: &Ledger, nodes: &[Node]) {
    let first = nodes[0].http().history().await.unwrap();
    for node in &nodes[1..] {
        let other = node.http().history().await.unwrap();
        assert!(first == other, "{} and {} differ", nodes[0].name(), node.name());
    }
    let mut places: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (place, message) in (1..).zip(&first) {
        assert_eq!(message["id"].as_u64(), Some(place), "a gap or a step back before {message}");
        places.entry(message["text"].as_str().unwrap()).or_default().push(place);
    }
    let answered = ledger.answered.lock().unwrap();
    for (text, id) in answered.iter() {
        assert_eq!(places.get(text.as_str()), Some(&vec![*id]), "{text} was answered as {id}");
    }
    let unknown = ledger.unknown.lock().unwrap();
    for text in unknown.iter() {
        let times = places.get(text.as_str()).map_or(0, Vec::len);
        assert!(times <= 1, "{text} was sent once and is there {times} times");
    }
    for text in ledger.refused.lock().unwrap().iter() {
        assert!(!places.contains_key(text.as_str()), "{text} was refused and is there");
    }
    let known = answered.len() + unknown.len();
    assert!(places.len() <= known, "{} texts are there, {known} were written", places.len());
    // A writer that waits for each answer finds its messages in the order in which it wrote them.
    for own in 0..PATIENT {
        let mut last = 0;
        for count in 0_u64.. {
            let Some(id) = answered.get(&format!("patient-{own} {count}")) else { break };
            assert!(*id > last, "patient-{own} {count} is {id}, before {last}");
            last = *id;
        }
    }
}
