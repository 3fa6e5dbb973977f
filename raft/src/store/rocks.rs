//! Options of the two databases, in one place.
//!
//! Memory: one block cache of 8 MiB for both, and two write buffers of 4 MiB each. Table options
//! are pinned, because snapshot files travel between versions (traps.md 18).

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRecoveryMode, IteratorMode, Options,
    ReadOptions,
};

use nexus_domain::{Direction, Fault, KeyRange};

/// Bytes of the block cache, shared by both databases.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes of one write buffer.
const BUFFER_BYTES: usize = 4 << 20;
/// Write buffers of one database: one fills while the other is flushed.
const BUFFERS: i32 = 2;

/// Makes the block cache that both databases share.
pub(crate) fn cache() -> Cache {
    Cache::new_lru_cache(CACHE_BYTES)
}

/// Returns what both databases have in common.
fn common(cache: &Cache) -> Options {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(cache);
    tables.set_format_version(5);
    tables.set_block_size(8 << 10);
    tables.set_bloom_filter(10.0, false);
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&tables);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(BUFFER_BYTES);
    options.set_max_write_buffer_number(BUFFERS);
    options.set_max_background_jobs(2);
    options.set_max_open_files(64);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options.set_paranoid_checks(true);
    options.set_track_and_verify_wals_in_manifest(true);
    options
}

/// Options of `log/`: bytes of the write-ahead log stay in memory until the flush thread syncs
/// them.
pub(crate) fn log_options(cache: &Cache, recovery: DBRecoveryMode) -> Options {
    let mut options = common(cache);
    options.set_manual_wal_flush(true);
    options.set_wal_recovery_mode(recovery);
    options
}

/// Options of `state/`: its log is on and unsynced; it may lose its tail, which the log replays.
pub(crate) fn state_options(cache: &Cache) -> Options {
    let mut options = common(cache);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options
}

/// Turns a RocksDB error into an I/O error.
pub(crate) fn io_error(error: rocksdb::Error) -> std::io::Error {
    std::io::Error::other(error.into_string())
}

/// Returns read options bounded to a range.
pub(crate) fn bounded(range: &KeyRange) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(range.start.clone());
    if let Some(end) = &range.end {
        options.set_iterate_upper_bound(end.clone());
    }
    options
}

/// Returns where a scan begins.
pub(crate) fn mode(direction: Direction) -> IteratorMode<'static> {
    match direction {
        Direction::Forward => IteratorMode::Start,
        Direction::Reverse => IteratorMode::End,
    }
}

/// What RocksDB's iterators give.
type Item = Result<(Box<[u8]>, Box<[u8]>), rocksdb::Error>;

/// Turns an iterator's item into a row of the domain.
pub(crate) fn row(item: Item) -> nexus_domain::store::Row {
    match item {
        Ok((key, value)) => Ok((key.into_vec(), value.into_vec())),
        Err(error) => {
            Err(Fault { what: format!("scan failed: {}", error.into_string()), key: String::new() })
        }
    }
}

/// Reads the database directly: what the sole writer of a database may do.
#[derive(Debug)]
pub(crate) struct Direct<'a>(pub(crate) &'a DB);

impl nexus_domain::Read for Direct<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.0.get(key).map_err(|error| Fault::at(key, error.into_string()))
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> nexus_domain::store::Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        Box::new(self.0.iterator_opt(mode(direction), bounded(&range)).map(row))
    }
}
