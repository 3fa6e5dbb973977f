//! Clock, jobs, backoff.
