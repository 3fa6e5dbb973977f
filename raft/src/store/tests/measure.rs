//! What the disk and the durable mark cost; run by hand, prints and checks nothing.

use std::time::Duration;

use bytes::Bytes;
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, RaftLogStorage as _};
use openraft::type_config::TypeConfigExt as _;
use tokio::time::Instant;

use super::NODE;
use crate::store::log::LogStore;
use crate::store::mark;
use crate::store::rocks;
use crate::types::{LogData, LogEntry, Payload, TypeConfig, log_id};

const LONG: Duration = Duration::from_millis(1500);

fn entry(index: u64) -> LogEntry {
    let payload = Payload::Normal(LogData(Bytes::from(vec![b'x'; 256])));
    LogEntry::new(log_id(1, NODE, index), payload)
}

/// Median and 99th percentile of one append with one fsync, in microseconds.
fn percentiles(mut all: Vec<Duration>) -> (u128, u128) {
    all.sort();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100].as_micros();
    (at(50), at(99))
}

/// Appends in a closed loop; as many are under way as there are writers.
async fn closed_loop(data: &std::path::Path, writers: usize) -> (f64, u128, u128) {
    let mut log = LogStore::open(data, &rocks::cache()).unwrap();
    let begun = Instant::now();
    let mut waiting = std::collections::VecDeque::new();
    let (mut index, mut times) = (0_u64, Vec::new());
    while begun.elapsed() < LONG {
        while waiting.len() < writers {
            let (done, wait) = TypeConfig::oneshot();
            log.append([entry(index)], IOFlushed::signal(done)).await.unwrap();
            waiting.push_back((Instant::now(), wait));
            index += 1;
        }
        let (since, wait) = waiting.pop_front().unwrap();
        wait.await.unwrap().unwrap();
        times.push(since.elapsed());
    }
    let count = u32::try_from(times.len()).unwrap();
    let (median, late) = percentiles(times);
    (f64::from(count) / begun.elapsed().as_secs_f64(), median, late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, by hand"]
async fn what_the_mark_costs() {
    let folder = tempfile::tempdir_in(".").unwrap();
    for writers in [1, 64] {
        // By turns, so that what else the disk does meets both.
        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..18 {
            let on = round % 2;
            mark::tests::set_writing(on == 1);
            let data = folder.path().join(format!("{writers}-{round}"));
            std::fs::create_dir(&data).unwrap();
            let (rate, median, late) = closed_loop(&data, writers).await;
            println!(
                "{writers:2} writers, mark {on}: {rate:8.0}/s, p50 {median} us, p99 {late} us"
            );
            rates[on].push(rate);
        }
        let [off, on] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        println!("{writers:2} writers, medians: {off:.0}/s without the mark, {on:.0}/s with it");
    }
    mark::tests::set_writing(true);
}

#[test]
#[ignore = "measures, by hand"]
fn what_a_flush_costs() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let options =
        rocks::log_options(&rocks::cache(), rocksdb::DBRecoveryMode::TolerateCorruptedTailRecords);
    let mut options = options;
    options.create_if_missing(true);
    let db = rocksdb::DB::open(&options, folder.path()).unwrap();
    for bytes in [300, 20_000] {
        let mut times = Vec::new();
        for index in 0..1500_u64 {
            db.put(index.to_be_bytes(), vec![b'x'; bytes]).unwrap();
            let begun = Instant::now();
            db.flush_wal(true).unwrap();
            times.push(begun.elapsed());
        }
        let (median, late) = percentiles(times);
        println!("flush_wal(true) of {bytes} bytes: p50 {median} us, p99 {late} us");
    }
}
