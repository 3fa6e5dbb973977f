//! The binary: everything is in the library, so that it can be tested.

use std::process::ExitCode;

/// What RocksDB and we take and give back at any rate costs less here, and what is not needed any
/// more goes back to the system (decision 33).
#[cfg(not(windows))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    nexus_node::main()
}
