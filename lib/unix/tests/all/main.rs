//! The library, tried in a world of its own (`common`): one binary, since linking it two
//! dozen times took longer than the tests.

mod common;

mod any_calls;
mod archive;
mod attributes;
mod burial;
mod capabilities;
mod compare_files;
mod document;
mod dumps;
mod exec;
mod exhaustion;
mod file_names;
mod files;
mod first;
mod futex;
mod given_back;
mod identity;
mod internet;
mod ipc;
mod keys;
mod locks;
mod memory;
mod natives;
mod other_processes;
mod pipes;
mod polling;
mod proc_files;
mod processes;
mod processors;
mod queues;
mod ring;
mod services;
mod signal_calls;
mod signals;
mod small_calls;
mod sockets;
mod splices;
mod stream_noise;
mod system;
mod terminals;
mod time;
mod tracing;
mod tuning;
mod watching;
