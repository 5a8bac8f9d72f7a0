//! Tests of the boot logic on the host.
