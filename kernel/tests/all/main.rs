//! The kernel on a simulated machine, which each thread of the host has for itself: one binary, since
//! linking it three dozen times took as long as the tests.

mod common;

mod accounts;
mod authority;
mod between;
mod between_phases;
mod ceilings;
mod checker;
mod crossed;
mod crossing;
mod crowds;
mod early;
mod elsewhere;
mod errands;
mod exchanges;
mod explore;
#[cfg(not(feature = "riscv64"))] // nobody is elsewhere there
mod explore_elsewhere;
mod foreign;
mod forged;
mod frames_first;
mod fuzzed;
mod ghosts;
mod goes_first;
mod hidden;
mod hidden_elsewhere;
mod identity;
mod items;
mod left_behind;
mod limits;
mod local;
mod lrpc;
mod mapping;
mod memory;
mod orphans;
mod overtaken;
mod parties;
#[cfg(not(feature = "riscv64"))] // RISC-V's address-space numbers are not used yet
mod pcid;
#[cfg(not(feature = "riscv64"))] // RISC-V has no ports
mod port_mapping;
mod rendezvous;
mod returns;
mod scheduling;
mod slices;
mod stands;
mod stretches;
mod sweep;
mod threads;
mod turned_away;
mod turns;
mod unmap_deleted;
mod waker;
mod window;
