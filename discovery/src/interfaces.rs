//! This machine's interfaces: which addresses to give to others, which of theirs to dial first,
//! and where mDNS may speak.
//!
//! Names decide what an interface is, since no portable call tells. Addresses of containers and
//! virtual machines are the same on many hosts, so they never come first; loopback is never given
//! away at all.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// As many addresses of one machine are given away: each is dialled by every other node.
pub const ADVERTISED_MAX: usize = 8;
/// As many IPv6 addresses of one interface: privacy extensions pile them up.
const IPV6_PER_INTERFACE_MAX: usize = 2;

/// Beginnings of names of interfaces that lead to containers and virtual machines.
const VIRTUAL: &[&str] = &[
    "docker",
    "br-",
    "veth",
    "virbr",
    "vmnet",
    "vboxnet",
    "vnet",
    "cni",
    "flannel",
    "cali",
    "podman",
    "lxcbr",
    "lxdbr",
    "nerdctl",
    "kube-",
    "dummy",
    "bridge1",
    "vethernet",
    "awdl",
    "llw",
];
/// Beginnings of names of interfaces that lead off the site.
const TUNNELS: &[&str] =
    &["tun", "tap", "utun", "wg", "tailscale", "zt", "ipsec", "ppp", "gre", "sit", "ip6tnl"];
/// Beginnings of names of wireless interfaces.
const WIRELESS: &[&str] = &["wl", "wifi", "wi-fi", "ath", "wwan"];

/// What an interface leads to, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// A cable, or what cannot be told from one.
    Wired,
    /// A wireless network.
    Wireless,
    /// A tunnel off the site: dialled last, and never spoken to by mDNS.
    Tunnel,
    /// Containers and virtual machines of this host.
    Virtual,
    /// This machine alone.
    Loopback,
}

/// One address of one interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name that the system gives it.
    pub name: String,
    /// The number by which IPv6 link-local addresses name it.
    pub index: Option<u32>,
    /// What it leads to.
    pub medium: Medium,
    /// The address.
    pub address: IpAddr,
    /// How many leading bits of the address name the network.
    pub prefix: u8,
}

/// How near an address of another machine is, the nearer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// In a network of one of this machine's real interfaces.
    Near,
    /// Behind a router, as far as one can tell.
    Routed,
    /// Link-local: good, but only through one interface.
    LinkLocal,
    /// In a network of containers or virtual machines, which every host has of its own.
    Virtual,
    /// This machine itself.
    Loopback,
}

/// Lists the addresses of all interfaces that are up.
///
/// # Errors
///
/// What the system says when it does not give the list.
pub fn list() -> io::Result<Vec<Interface>> {
    let mut found = Vec::new();
    for interface in if_addrs::get_if_addrs()? {
        if !interface.is_oper_up() {
            continue;
        }
        let prefix = match &interface.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        };
        let medium = medium(&interface.name, interface.is_loopback(), interface.is_p2p());
        let address = interface.ip();
        found.push(Interface {
            name: interface.name,
            index: interface.index,
            medium,
            address,
            prefix,
        });
    }
    Ok(found)
}

/// Returns the addresses to give to other machines, the best first; none when there is no network.
///
/// # Errors
///
/// What the system says when it does not give the list of interfaces.
pub fn advertised() -> io::Result<Vec<IpAddr>> {
    Ok(rank(&list()?))
}

/// Picks and orders the addresses to give to other machines: wired before wireless before tunnels,
/// IPv4 and global IPv6 before the rest.
///
/// Addresses of containers and virtual machines are left out unless there is nothing else, as in a
/// container itself; loopback and IPv6 link-local ones always.
#[must_use]
pub fn rank(interfaces: &[Interface]) -> Vec<IpAddr> {
    let real = interfaces.iter().any(|interface| interface.medium <= Medium::Wireless);
    let mut kept: Vec<(Medium, u8, IpAddr)> = Vec::new();
    let mut ipv6_of: BTreeMap<&str, usize> = BTreeMap::new();
    for interface in interfaces {
        let virtual_beside_real = real && interface.medium == Medium::Virtual;
        let Some(worth) = worth(&interface.address) else { continue };
        if virtual_beside_real || interface.medium == Medium::Loopback {
            continue;
        }
        if interface.address.is_ipv6() {
            let count = ipv6_of.entry(&interface.name).or_default();
            *count += 1;
            if *count > IPV6_PER_INTERFACE_MAX {
                continue;
            }
        }
        kept.push((interface.medium, worth, interface.address));
    }
    kept.sort_by_key(|(medium, worth, _)| (*medium, *worth));
    let mut addresses: Vec<IpAddr> = Vec::new();
    for (_, _, address) in kept {
        if addresses.len() < ADVERTISED_MAX && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Names the interfaces on which mDNS may speak: the real ones, and the virtual ones only where
/// there is nothing else; tunnels never.
#[must_use]
pub fn lan_names(interfaces: &[Interface]) -> BTreeSet<String> {
    let named = |wanted: &[Medium]| -> BTreeSet<String> {
        interfaces
            .iter()
            .filter(|interface| wanted.contains(&interface.medium))
            .map(|interface| interface.name.clone())
            .collect()
    };
    let real = named(&[Medium::Wired, Medium::Wireless]);
    if real.is_empty() { named(&[Medium::Virtual]) } else { real }
}

/// Says how near an address is, seen from these interfaces.
#[must_use]
pub fn reach(interfaces: &[Interface], address: &SocketAddr) -> Reach {
    let ip = address.ip().to_canonical();
    if ip.is_loopback() {
        return Reach::Loopback;
    }
    if is_link_local(&ip) {
        return Reach::LinkLocal;
    }
    // In a container the only interface may bear a virtual name, and is real all the same.
    let names = lan_names(interfaces);
    let mut network = interfaces.iter().filter(|own| same_network(&own.address, &ip, own.prefix));
    match network.next() {
        Some(own) if names.contains(&own.name) => Reach::Near,
        Some(own) if own.medium == Medium::Virtual => Reach::Virtual,
        Some(_) => Reach::Routed,
        None if is_docker_default(&ip) => Reach::Virtual,
        None => Reach::Routed,
    }
}

/// Whether the address is link-local, and so without meaning on another machine or interface.
#[must_use]
pub fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

fn medium(name: &str, is_loopback: bool, is_point_to_point: bool) -> Medium {
    let name = name.to_ascii_lowercase();
    let begins = |list: &[&str]| list.iter().any(|beginning| name.starts_with(beginning));
    if is_loopback {
        Medium::Loopback
    } else if begins(VIRTUAL) {
        Medium::Virtual
    } else if is_point_to_point || begins(TUNNELS) {
        Medium::Tunnel
    } else if begins(WIRELESS) {
        Medium::Wireless
    } else {
        Medium::Wired
    }
}

/// Orders the addresses of one medium; none for what means nothing elsewhere.
fn worth(address: &IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() || v4.is_loopback() => None,
        IpAddr::V4(v4) if v4.is_link_local() => Some(3),
        IpAddr::V4(_) => Some(0),
        IpAddr::V6(v6) if v6.is_unspecified() || v6.is_loopback() => None,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => None,
        IpAddr::V6(v6) if v6.is_unique_local() => Some(2),
        IpAddr::V6(_) => Some(1),
    }
}

fn is_docker_default(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V4(v4) if same_network(
        &IpAddr::V4(Ipv4Addr::new(172, 17, 0, 0)),
        &IpAddr::V4(*v4),
        16,
    ))
}

fn same_network(own: &IpAddr, other: &IpAddr, prefix: u8) -> bool {
    // A prefix of 0 would make the whole internet one network.
    match (own, other) {
        _ if prefix == 0 => false,
        (IpAddr::V4(own), IpAddr::V4(other)) => {
            let host_bits = 32_u32.saturating_sub(u32::from(prefix));
            Ipv4Addr::to_bits(*own) >> host_bits == Ipv4Addr::to_bits(*other) >> host_bits
        }
        (IpAddr::V6(own), IpAddr::V6(other)) => {
            let host_bits = 128_u32.saturating_sub(u32::from(prefix));
            Ipv6Addr::to_bits(*own) >> host_bits == Ipv6Addr::to_bits(*other) >> host_bits
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, address: &str, prefix: u8) -> Interface {
        let address: IpAddr = address.parse().unwrap();
        let medium = medium(name, address.is_loopback(), false);
        Interface { name: name.to_owned(), index: None, medium, address, prefix }
    }

    fn desk() -> Vec<Interface> {
        vec![
            own("lo", "127.0.0.1", 8),
            own("docker0", "172.18.0.1", 16),
            own("wg0", "10.9.0.2", 24),
            own("wlp3s0", "192.168.7.20", 24),
            own("enp2s0", "fe80::1", 64),
            own("enp2s0", "fd00::5", 64),
            own("enp2s0", "2001:db8::5", 64),
            own("enp2s0", "2001:db8::6", 64),
            own("enp2s0", "2001:db8::7", 64),
            own("enp2s0", "192.168.1.20", 24),
            own("vethab12", "fe80::2", 64),
        ]
    }

    #[test]
    fn wired_comes_first_and_containers_and_loopback_not_at_all() {
        let ranked: Vec<String> = rank(&desk()).iter().map(ToString::to_string).collect();
        let wanted = ["192.168.1.20", "2001:db8::5", "fd00::5", "192.168.7.20", "10.9.0.2"];
        assert_eq!(ranked, wanted);
    }

    #[test]
    fn in_a_container_the_only_interface_counts() {
        let inside = [own("lo", "127.0.0.1", 8), own("veth1", "10.77.0.2", 24)];
        assert_eq!(rank(&inside), ["10.77.0.2".parse::<IpAddr>().unwrap()]);
        assert_eq!(lan_names(&inside), BTreeSet::from(["veth1".to_owned()]));
        assert_eq!(reach(&inside, &"10.77.0.3:1".parse().unwrap()), Reach::Near);
    }

    #[test]
    fn mdns_speaks_on_real_interfaces_only() {
        let wanted = BTreeSet::from(["enp2s0".to_owned(), "wlp3s0".to_owned()]);
        assert_eq!(lan_names(&desk()), wanted);
        assert!(lan_names(&[own("tun0", "10.9.0.2", 24)]).is_empty());
    }

    #[test]
    fn reach_puts_the_lan_first_and_this_machine_last() {
        let desk = desk();
        for (address, wanted) in [
            ("192.168.1.77:5689", Reach::Near),
            ("[::ffff:192.168.7.9]:5689", Reach::Near),
            ("[2001:db8::99]:5689", Reach::Near),
            ("10.1.2.3:5689", Reach::Routed),
            ("10.9.0.7:5689", Reach::Routed),
            ("[fe80::9%2]:5689", Reach::LinkLocal),
            ("169.254.3.4:5689", Reach::LinkLocal),
            ("172.18.0.5:5689", Reach::Virtual),
            ("172.17.0.1:5689", Reach::Virtual),
            ("127.0.0.1:5689", Reach::Loopback),
            ("[::1]:5689", Reach::Loopback),
        ] {
            assert_eq!(reach(&desk, &address.parse().unwrap()), wanted, "{address}");
        }
    }

    #[test]
    fn this_machine_has_a_list() {
        let all = list().unwrap();
        assert!(all.iter().any(|own| own.medium == Medium::Loopback), "{all:?}");
    }
}
