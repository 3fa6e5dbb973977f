//! Addresses that the user gave: `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
//!
//! A seed is a name until it is needed: names are resolved at each search, since they may lead
//! elsewhere by then.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::time::Duration;

use crate::interfaces;

/// The cluster port, when a seed names none.
pub const DEFAULT_PORT: u16 = 5689;
/// A DNS name is no longer than this.
const NAME_BYTES_MAX: usize = 253;
/// A resolver that takes longer is as good as none: mDNS and other seeds go on meanwhile.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);
/// As many addresses of one name are used.
const ADDRESSES_MAX: usize = 8;

/// Why a seed cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The text is no seed.
    #[error("seed {text:?} {wrong}: it should be HOST, HOST:PORT or [IPV6]:PORT")]
    Malformed {
        /// What was given.
        text: String,
        /// What is wrong with it.
        wrong: &'static str,
    },
    /// An IPv6 scope names no interface of this machine.
    #[error("seed {seed} names interface {scope:?}, which is not here: it should be one of {here}")]
    NoInterface {
        /// The seed.
        seed: Seed,
        /// The interface that it names.
        scope: String,
        /// The interfaces that there are.
        here: String,
    },
    /// The name could not be resolved.
    #[error("seed {seed} cannot be resolved: check the name, or give the address instead")]
    Unresolved {
        /// The seed.
        seed: Seed,
        /// What the resolver said.
        source: std::io::Error,
    },
    /// The resolver knows the name and gives no address for it.
    #[error("seed {0} has no address: check the name, or give the address instead")]
    NoAddress(Seed),
}

/// An address or a name that the user gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Address(IpAddr),
    Scoped(Ipv6Addr, String),
    Name(String),
}

impl Seed {
    /// Returns the port, which is the default one when the text named none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Gives the addresses behind the seed, in the resolver's order.
    ///
    /// # Errors
    ///
    /// [`SeedError`] when the name leads nowhere within five seconds, or a scope is not here.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, SeedError> {
        match &self.host {
            Host::Address(ip) => Ok(vec![SocketAddr::new(*ip, self.port)]),
            Host::Scoped(ip, scope) => {
                let index = self.scope_index(scope)?;
                Ok(vec![SocketAddrV6::new(*ip, self.port, 0, index).into()])
            }
            Host::Name(name) => self.look_up(name).await,
        }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<SocketAddr>, SeedError> {
        let lookup = tokio::net::lookup_host((name, self.port));
        let answer = match tokio::time::timeout(RESOLVE_LIMIT, lookup).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(std::io::ErrorKind::TimedOut.into()),
        };
        let answer =
            answer.map_err(|source| SeedError::Unresolved { seed: self.clone(), source })?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in answer {
            if addresses.len() < ADDRESSES_MAX && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { Err(SeedError::NoAddress(self.clone())) } else { Ok(addresses) }
    }

    fn scope_index(&self, scope: &str) -> Result<u32, SeedError> {
        if let Ok(index) = scope.parse() {
            return Ok(index);
        }
        let here = interfaces::list().unwrap_or_default();
        let index = here.iter().find(|own| own.name == scope).and_then(|own| own.index);
        index.ok_or_else(|| {
            let mut names: Vec<&str> = here.iter().map(|own| own.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            SeedError::NoInterface {
                seed: self.clone(),
                scope: scope.to_owned(),
                here: names.join(", "),
            }
        })
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(ip) => write!(f, "{}", SocketAddr::new(*ip, self.port)),
            Host::Scoped(ip, scope) => write!(f, "[{ip}%{scope}]:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl From<SocketAddr> for Seed {
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                Host::Scoped(*v6.ip(), v6.scope_id().to_string())
            }
            SocketAddr::V4(_) | SocketAddr::V6(_) => Host::Address(address.ip()),
        };
        Self { host, port: address.port() }
    }
}

impl FromStr for Seed {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        parse(text).map_err(|wrong| SeedError::Malformed {
            text: text.chars().take(NAME_BYTES_MAX).collect(),
            wrong,
        })
    }
}

fn parse(text: &str) -> Result<Seed, &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    if text.contains("://") {
        return Err("is a URL");
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or("lacks the closing bracket")?;
        let port = match after.strip_prefix(':') {
            Some(port) => parse_port(port)?,
            None if after.is_empty() => DEFAULT_PORT,
            None => return Err("has something other than :PORT after the bracket"),
        };
        return Ok(Seed { host: parse_ipv6(inside)?, port });
    }
    match text.matches(':').count() {
        0 => Ok(Seed { host: parse_host(text)?, port: DEFAULT_PORT }),
        1 => {
            let (host, port) = text.split_once(':').ok_or("lacks a port")?;
            Ok(Seed { host: parse_host(host)?, port: parse_port(port)? })
        }
        // An address without brackets has room for no port.
        _ => Ok(Seed { host: parse_ipv6(text)?, port: DEFAULT_PORT }),
    }
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    const WRONG: &str = "has no port from 1 to 65535 after the colon";
    let port = text.parse().map_err(|_not_a_number| WRONG)?;
    if port == 0 || text.starts_with('+') { Err(WRONG) } else { Ok(port) }
}

fn parse_ipv6(text: &str) -> Result<Host, &'static str> {
    let (address, scope) = match text.split_once('%') {
        Some((address, scope)) => (address, Some(scope)),
        None => (text, None),
    };
    let ip: Ipv6Addr = address.parse().map_err(|_not_an_address| "is no IPv6 address")?;
    match scope {
        None if ip.is_unicast_link_local() => Err("is link-local and lacks %INTERFACE"),
        None => check_address(IpAddr::V6(ip)),
        Some("") => Err("has no interface after the %"),
        Some(scope) => Ok(Host::Scoped(ip, scope.to_owned())),
    }
}

fn parse_host(text: &str) -> Result<Host, &'static str> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return check_address(IpAddr::V4(ip));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return Err("has a host that is neither an address nor a name");
    }
    // All digits and dots, and yet no address: a resolver would read it in some old way.
    if name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err("has a host that is no IPv4 address");
    }
    Ok(Host::Name(text.to_ascii_lowercase()))
}

fn check_address(ip: IpAddr) -> Result<Host, &'static str> {
    if ip.is_unspecified() || ip.is_multicast() {
        return Err("names no single machine");
    }
    Ok(Host::Address(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_form_is_read() {
        for (text, shown) in [
            ("desk", "desk:5689"),
            ("Desk.Local:6000", "desk.local:6000"),
            ("10.0.0.2", "10.0.0.2:5689"),
            (" 10.0.0.2:1 ", "10.0.0.2:1"),
            ("2001:db8::1", "[2001:db8::1]:5689"),
            ("[2001:db8::1]", "[2001:db8::1]:5689"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
            ("fe80::1%eth0", "[fe80::1%eth0]:5689"),
            ("[fe80::1%2]:7", "[fe80::1%2]:7"),
            ("under_score.lan.:7", "under_score.lan.:7"),
        ] {
            let seed: Seed = text.parse().unwrap();
            assert_eq!(seed.to_string(), shown);
            assert_eq!(shown.parse::<Seed>().unwrap(), seed, "its own text reads back");
        }
    }

    #[test]
    fn every_wrong_form_says_what_is_right() {
        for text in [
            "",
            "  ",
            "http://desk:5689",
            "desk:",
            "desk:0",
            "desk:+1",
            "desk:65536",
            "desk:x",
            ":5689",
            "[::1",
            "[::1]x",
            "[desk]:1",
            "a:b:c",
            "fe80::1",
            "[fe80::1%]:1",
            "0.0.0.0",
            "[::]:1",
            "224.0.0.251",
            "1.2.3",
            "1.2.3.4.5:6",
            "a..b",
            "de sk",
            "dé:1",
            "a/b",
        ] {
            let error = text.parse::<Seed>().unwrap_err().to_string();
            assert!(error.ends_with("it should be HOST, HOST:PORT or [IPV6]:PORT"), "{error}");
        }
        let long = "a".repeat(10_000);
        assert!(long.parse::<Seed>().unwrap_err().to_string().len() < 400);
    }

    #[tokio::test]
    async fn addresses_resolve_to_themselves_and_scopes_to_interfaces() {
        let address: SocketAddr = "10.0.0.2:7".parse().unwrap();
        assert_eq!(Seed::from(address).resolve().await.unwrap(), [address]);
        let scoped: Seed = "[fe80::1%3]:7".parse().unwrap();
        assert_eq!(scoped.resolve().await.unwrap(), ["[fe80::1%3]:7".parse().unwrap()]);
        let missing: Seed = "[fe80::1%nowhere0]:7".parse().unwrap();
        let error = missing.resolve().await.unwrap_err().to_string();
        assert!(error.contains("nowhere0") && error.contains("one of"), "{error}");
    }

    #[tokio::test]
    async fn a_name_resolves_to_its_addresses() {
        let seed: Seed = "localhost:7".parse().unwrap();
        let addresses = seed.resolve().await.unwrap();
        assert!(addresses.iter().all(|a| a.ip().is_loopback() && a.port() == 7), "{addresses:?}");
    }
}
