//! What stands beside a client.
