//! The replicated log of nexus: openraft, RocksDB, QUIC.
