//! Ctrl-C and SIGTERM: what asks this process to end.
//!
//! They are listened for from before the first thing is made until the end, in one place: where
//! nobody listens for a moment, a signal is lost.

/// What asks this process to end; a signal that comes while nobody waits is kept.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    kinds: [Option<tokio::signal::unix::Signal>; 2],
}

impl Signals {
    /// Begins to listen: from now on a signal does not end the process by itself.
    pub(crate) fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [("SIGINT", SignalKind::interrupt()), ("SIGTERM", SignalKind::terminate())];
            let listen = |(name, kind)| {
                let listened = signal(kind);
                listened.inspect_err(|error| tracing::warn!("{name} cannot be awaited: {error}"))
            };
            Self { kinds: kinds.map(|kind| listen(kind).ok()) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate] = &mut self.kinds;
            tokio::select! {
                () = received(interrupt) => {}
                () = received(terminate) => {}
            }
        }
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await.ok();
    }
}

#[cfg(unix)]
async fn received(kind: &mut Option<tokio::signal::unix::Signal>) {
    let next = match kind {
        Some(kind) => kind.recv().await,
        None => None,
    };
    if next.is_none() {
        // It cannot be awaited: the other one still can.
        std::future::pending::<()>().await;
    }
}

/// Ends the process without any order.
#[expect(clippy::exit, reason = "the user asked a second time and wants no order any more")]
pub(crate) fn at_once() -> ! {
    tracing::warn!("second signal: ended at once");
    std::process::exit(130);
}
