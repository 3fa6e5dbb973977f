//! What a source of sightings is asked for, and where it puts what it finds.
//!
//! A source follows a wish as it stands, not a list of orders: whatever came in between, it makes
//! the world agree with the latest one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nexus_rt::Clock;
use tokio::sync::watch;

use crate::directory::Directory;
use crate::interfaces;
use crate::record::Record;

/// What a node says about itself, and where it can be dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The words of its record.
    pub record: Record,
    /// The port of its cluster socket.
    pub port: u16,
    /// The addresses to announce; none means those of every interface that mDNS speaks on.
    pub addresses: Vec<IpAddr>,
}

impl Announcement {
    /// The name of this start of this node: another start has another, so none is ever in conflict.
    pub(crate) fn instance(&self) -> String {
        format!("nexus-{}-{:016x}", self.record.node, self.record.boot)
    }
}

/// What the source should do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) announce: Option<Announcement>,
    pub(crate) searches: usize,
    /// Counts how often the source was asked to begin anew.
    pub(crate) rebuilds: u64,
}

impl Wish {
    pub(crate) fn is_silent(&self) -> bool {
        self.announce.is_none() && self.searches == 0
    }
}

/// How discovery on the LAN fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// There is no LAN source; seeds and told addresses only.
    #[default]
    Off,
    /// Nobody asked for anything yet: no socket is open.
    Silent,
    /// It speaks and listens.
    Live,
    /// It could not start or broke, and tries again.
    Failing,
}

/// What `status` and `doctor` can say about discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How it fares.
    pub activity: Activity,
    /// The instance name under which this node is announced, once it is.
    pub announced: Option<String>,
    /// The names of the interfaces on which it speaks.
    pub interfaces: Vec<String>,
    /// The last thing that went wrong on the LAN, until it goes well again.
    pub trouble: Option<String>,
    /// Why seeds could not be used, one sentence each.
    pub seed_troubles: Vec<String>,
}

/// Where sources put what they find; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) directory: watch::Sender<Directory>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Sink {
    pub(crate) fn now(&self) -> u64 {
        self.clock.boot_millis()
    }

    /// Changes the directory, and wakes its readers if the change says that they could notice.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Directory, u64) -> bool) -> bool {
        let now = self.now();
        self.directory.send_if_modified(|directory| change(directory, now))
    }

    pub(crate) fn saw(&self, instance: &str, record: Record, addresses: &[SocketAddr]) {
        if self.change(|directory, now| directory.saw(instance, record, addresses, now)) {
            tracing::debug!(instance, ?addresses, "a node announces itself");
        }
    }

    pub(crate) fn gone(&self, instance: &str) {
        if self.change(|directory, _| directory.gone(instance)) {
            tracing::debug!(instance, "a node is no longer announced");
        }
    }

    /// Looks at this machine's interfaces again.
    pub(crate) fn look_at_interfaces(&self) {
        match interfaces::list() {
            Ok(list) => {
                self.change(|directory, _| directory.set_interfaces(list));
            }
            Err(error) => tracing::warn!(%error, "this machine's interfaces cannot be listed"),
        }
    }

    pub(crate) fn report(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
    }

    /// Warns of trouble, once until it is another.
    pub(crate) fn trouble(&self, trouble: String) {
        let known = self.status.borrow().trouble.as_ref() == Some(&trouble);
        if !known {
            tracing::warn!("discovery: {trouble}");
            self.report(|status| status.trouble = Some(trouble));
        }
    }
}
