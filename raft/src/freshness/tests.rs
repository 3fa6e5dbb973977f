use std::sync::Arc;
use std::time::Duration;

use nexus_rt::ManualClock;
use openraft::{Instant as _, TokioInstant};

use super::{ECHOES_MAX, Freshness, WAITING_MAX};
use crate::machine::{Applied, Progress};
use crate::rpc::message::{Moment, WireQuorum};
use crate::types::log_id;

/// The wall clock at the beginning of each test.
const WALL: u64 = 1_800_000_000_000;

struct Follower {
    clock: Arc<ManualClock>,
    progress: Arc<Progress>,
    freshness: Freshness,
}

fn follower() -> Follower {
    let clock = Arc::new(ManualClock::new(WALL));
    clock.advance(Duration::from_secs(60));
    clock.set_wall_millis(WALL);
    let progress = Arc::new(Progress::new());
    let freshness = Freshness::new(2, 7, clock.clone(), progress.clone());
    Follower { clock, progress, freshness }
}

impl Follower {
    fn apply(&self, index: u64) {
        let applied = Applied { id: Some(log_id(1, 1, index)), ..Applied::default() };
        self.progress.applied.send_replace(applied);
    }

    fn told(&self, commit: u64, echo: Moment, after_millis: u64) {
        self.freshness.told(WireQuorum { commit, echo, after_millis });
    }

    fn advance(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }
}

#[test]
fn a_word_counts_from_when_its_index_is_applied() {
    let follower = follower();
    assert_eq!(follower.freshness.as_of(), None);
    let moment = follower.freshness.moment();
    follower.advance(100);
    follower.told(5, moment, 40);
    follower.apply(4);
    assert_eq!(follower.freshness.as_of(), None);
    follower.apply(5);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 40));
    // A set wall clock moves what is shown, not what is known.
    follower.clock.set_wall_millis(WALL + 1_000_000);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 1_000_000 - 60));
}

#[test]
fn a_word_that_is_read_late_is_no_younger() {
    let follower = follower();
    follower.apply(5);
    let moment = follower.freshness.moment();
    follower.advance(3_600_000);
    follower.told(5, moment, 100);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 100));
}

#[test]
fn words_of_another_start_or_of_the_future_are_no_news() {
    let follower = follower();
    follower.apply(5);
    let Moment { boot, millis } = follower.freshness.moment();
    follower.told(5, Moment { boot: boot - 1, millis }, 0);
    follower.told(5, Moment { boot, millis }, 1);
    assert_eq!(follower.freshness.as_of(), None);
}

#[test]
fn rounds_and_words_make_one_time_the_latest() {
    let follower = follower();
    follower.apply(9);
    let moment = follower.freshness.moment();
    follower.advance(500);
    follower.freshness.confirmed(9, moment.millis + 300);
    follower.told(9, moment, 200);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 300));
    // What is not applied yet does not take away what is.
    follower.told(10, moment, 400);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 300));
    follower.apply(10);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 400));
}

#[test]
fn a_state_that_lags_for_long_goes_on_learning() {
    let follower = follower();
    let moment = follower.freshness.moment();
    let words = u64::try_from(WAITING_MAX).unwrap() * 3;
    follower.advance(words);
    for count in 1..=words {
        follower.told(count, moment, count);
    }
    follower.apply(10);
    assert_eq!(follower.freshness.as_of(), Some(WALL + 10));
    follower.apply(words);
    assert_eq!(follower.freshness.as_of(), Some(WALL + words));
}

#[test]
fn a_leader_tells_by_the_last_acknowledgement_before_the_quorums() {
    let follower = follower();
    let leader = &follower.freshness;
    let said = |millis| Moment { boot: 3, millis };
    let begun = TokioInstant::now();
    let at = |millis| begun + Duration::from_millis(millis);
    leader.heard_at(4, said(1000), at(10));
    leader.heard_at(4, said(1050), at(60));
    let told = |at| leader.word(4, at, 8);
    let word = WireQuorum { commit: 8, echo: said(1000), after_millis: 30 };
    assert_eq!(told(at(40)), Some(word));
    // Nothing was heard before that time, or nothing at all: nothing can be told.
    assert_eq!(told(at(9)), None);
    assert_eq!(leader.word(5, at(40), 8), None);
    // What is too long ago has been told before.
    for count in 0..u64::try_from(ECHOES_MAX).unwrap() {
        leader.heard_at(4, said(2000 + count), at(100 + count));
    }
    assert_eq!(told(at(40)), None);
    assert!(told(at(500)).is_some());
    leader.forget(&[4]);
    assert_eq!(told(at(500)), None);
}
