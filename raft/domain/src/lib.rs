//! The replicated state machine of nexus, pure and no_std.
