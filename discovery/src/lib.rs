//! Who is out there: hints, never membership.
