//! The HTTP port, and who has it when it is taken; and what to say of an address that is not this
//! machine's, of either port.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nexus_discovery::interfaces::{self, Interface};
use tokio::net::TcpListener;

/// How long whoever has the port may take to say who it is.
const ASK_LIMIT: Duration = Duration::from_secs(2);
/// As many addresses of this machine are named: a host of containers has hundreds.
const NAMED_MAX: usize = 12;

/// Why HTTP cannot be served there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    #[error("port {address} (--http) is taken by {holder}")]
    Taken { address: SocketAddr, holder: Holder },
    #[error("address {address} (--http) cannot be listened on")]
    Failed { address: SocketAddr, source: std::io::Error },
}

/// Who answers on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A node of ours.
    Nexus,
    /// The program that nexus replaces.
    N2nNexus,
    /// Anything else.
    Other,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Nexus => "another nexus node",
            Self::N2nNexus => "n2n-nexus",
            Self::Other => "another program",
        })
    }
}

impl PortError {
    /// Returns what the user can do.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Taken { holder: Holder::Nexus, .. } => {
                "one node serves all clients of this machine; see it with `nexus status`, or give \
                 a second one its own --data DIR, --http 127.0.0.1:0 and --cluster 127.0.0.1:0"
                    .to_owned()
            }
            Self::Taken { holder: Holder::N2nNexus, .. } => {
                "nexus takes n2n-nexus's place on this port: stop it (quit its tray, end \
                 `n2n-nexus-host serve`, or `n2n-nexus-host service uninstall`), then start nexus \
                 again; clients find the same tools at the same address. To try nexus beside it, \
                 give --http 127.0.0.1:0"
                    .to_owned()
            }
            Self::Taken { address, .. } => format!(
                "find it with `ss -ltnp 'sport = :{}'`, or give --http 127.0.0.1:0 for a free port",
                address.port()
            ),
            Self::Failed { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                "ports below 1024 belong to root: give --http 127.0.0.1:5688".to_owned()
            }
            Self::Failed { address, source } if source.kind() == ErrorKind::AddrNotAvailable => {
                format!("{}; for clients of this machine give 127.0.0.1:5688", foreign(*address))
            }
            Self::Failed { .. } => {
                "give an address of this machine, such as --http 127.0.0.1:5688".to_owned()
            }
        }
    }
}

/// Says that an address is none of this machine's, and which are.
pub(super) fn foreign(address: SocketAddr) -> String {
    let own = interfaces::list().unwrap_or_else(|error| {
        tracing::debug!(%error, "this machine's addresses cannot be listed");
        Vec::new()
    });
    foreign_to(address.ip(), own)
}

fn foreign_to(ip: IpAddr, mut own: Vec<Interface>) -> String {
    // A link-local address is bound with its interface's number, which nobody types.
    own.retain(|interface| !interfaces::is_link_local(&interface.address));
    own.sort_by_key(|interface| (interface.medium, interface.address.is_ipv6()));
    let more = own.len().saturating_sub(NAMED_MAX);
    let named = own.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named.map(|it| format!("{} ({})", it.address, it.name)).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    if named.is_empty() {
        return format!("{ip} belongs to no interface of this machine");
    }
    format!("{ip} belongs to no interface of this machine, which has {}", named.join(", "))
}

/// Binds the port, or says who has it.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, PortError> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let holder = who_answers(address).await;
            Err(PortError::Taken { address, holder })
        }
        Err(source) => Err(PortError::Failed { address, source }),
    }
}

/// Returns where the listener is.
pub(crate) fn address(listener: &TcpListener, asked: SocketAddr) -> Result<SocketAddr, PortError> {
    listener.local_addr().map_err(|source| PortError::Failed { address: asked, source })
}

/// Asks who is there: a nexus node names itself, n2n-nexus is known by its tools.
async fn who_answers(address: SocketAddr) -> Holder {
    let client = reqwest::Client::builder().no_proxy().timeout(ASK_LIMIT).build();
    let Ok(client) = client else { return Holder::Other };
    let ask = async |path: &str| {
        let answer = client.get(format!("http://{address}{path}")).send().await.ok()?;
        answer.text().await.ok()
    };
    if let Some(text) = ask("/health").await {
        let health: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let name = health.as_ref().and_then(|health| health.get("name")?.as_str());
        if name == Some("nexus") {
            return Holder::Nexus;
        }
        if text.contains("n2n-nexus") {
            return Holder::N2nNexus;
        }
    }
    match ask("/api/tools").await {
        Some(text) if text.contains("send_message") || text.contains("n2n-nexus") => {
            Holder::N2nNexus
        }
        Some(_) | None => Holder::Other,
    }
}

#[cfg(test)]
mod tests {
    use nexus_discovery::interfaces::Medium;

    use super::*;

    async fn holder_of(health: &'static str, tools: &'static str) -> Holder {
        use axum::routing::get;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let jobs = nexus_rt::Jobs::new();
        let router = axum::Router::new()
            .route("/health", get(async move || health))
            .route("/api/tools", get(async move || tools));
        let token = jobs.token();
        jobs.spawn("other program", async move {
            let stop = async move { token.cancelled().await };
            axum::serve(listener, router).with_graceful_shutdown(stop).await.unwrap();
        });
        let error = bind(address).await.unwrap_err();
        jobs.shutdown(Duration::from_secs(5)).await;
        match error {
            PortError::Taken { holder, .. } => holder,
            PortError::Failed { source, .. } => panic!("{source}"),
        }
    }

    #[test]
    fn a_foreign_address_is_told_with_those_of_this_machine() {
        let own = |name: &str, address: &str, medium| Interface {
            name: name.to_owned(),
            index: None,
            medium,
            address: address.parse().unwrap(),
            prefix: 24,
        };
        let ip: IpAddr = "192.0.2.1".parse().unwrap();
        let bare = "192.0.2.1 belongs to no interface of this machine";
        let mut all = vec![
            own("lo", "127.0.0.1", Medium::Loopback),
            own("eth0", "fe80::1", Medium::Wired),
            own("eth0", "2001:db8::5", Medium::Wired),
            own("docker0", "172.17.0.1", Medium::Virtual),
            own("eth0", "10.0.0.5", Medium::Wired),
        ];
        assert_eq!(
            foreign_to(ip, all.clone()),
            format!(
                "{bare}, which has 10.0.0.5 (eth0), 2001:db8::5 (eth0), 172.17.0.1 (docker0), \
                 127.0.0.1 (lo)"
            )
        );
        for number in 0..20 {
            all.push(own("veth", &format!("172.18.0.{number}"), Medium::Virtual));
        }
        let text = foreign_to(ip, all);
        assert!(text.ends_with(", 12 more") && text.contains("10.0.0.5 (eth0)"), "{text}");
        assert_eq!(foreign_to(ip, Vec::new()), bare);
    }

    #[tokio::test]
    async fn who_has_the_port_is_named() {
        let nexus = holder_of(r#"{"ok":true,"name":"nexus"}"#, "[]").await;
        assert_eq!(nexus, Holder::Nexus);
        let former = holder_of("ok", r#"{"tools":[{"name":"send_message"}]}"#).await;
        assert_eq!(former, Holder::N2nNexus);
        assert_eq!(holder_of("hello", "<html>").await, Holder::Other);
    }
}
