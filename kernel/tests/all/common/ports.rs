//! The model of port mappings: one table per space, port by port.

/// Where every port of every space comes from; index 0 is σ0.
pub struct Ports {
    /// `None`: not there; `Some(s)`: derived from the same port of space s.
    pub from: Vec<Vec<Option<usize>>>,
}

/// σ0's ports come from the machine.
const MACHINE: usize = usize::MAX;

impl Ports {
    pub fn new(spaces: usize, ports: usize) -> Self {
        let mut from = vec![vec![None; ports]; spaces];
        from[0] = vec![Some(MACHINE); ports];
        Self { from }
    }

    /// Everything derived from `port` of `space` goes.
    pub fn flush(&mut self, space: usize, port: usize) {
        for child in 1..self.from.len() {
            if self.from[child][port] == Some(space) {
                self.remove(child, port);
            }
        }
    }

    /// The port and everything derived from it go (σ0 keeps its ports).
    pub fn remove(&mut self, space: usize, port: usize) {
        self.flush(space, port);
        if space != 0 {
            self.from[space][port] = None;
        }
    }

    /// Map or grant of one port.
    pub fn transfer(&mut self, src: usize, dst: usize, port: usize, grant: bool) {
        if src == dst || dst == 0 || self.from[src][port].is_none() {
            return;
        }
        let grant = grant && src != 0;
        let parent = if grant { self.from[src][port] } else { Some(src) };
        if self.from[dst][port] != parent {
            self.remove(dst, port);
            if self.from[src][port].is_none() {
                return;
            }
            self.from[dst][port] = parent;
        }
        if grant {
            for child in 1..self.from.len() {
                if self.from[child][port] == Some(src) {
                    self.from[child][port] = Some(dst);
                }
            }
            self.from[src][port] = None;
        }
    }
}
