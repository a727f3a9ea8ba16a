//! Streams and events: queues, the order of execution, and times.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use crate::gpu::{Gpu, INVALID_VALUE, NOT_READY};

/// Additional nanoseconds of the first launch of a kernel or of cuBLAS, which loads code.
const LOADING_NS: u64 = 2_000_000;

/// An entry of a stream's queue.
pub enum Pending {
    Work(Box<dyn FnOnce(&mut Gpu) + Send>),
    Copy(Box<dyn FnOnce(&mut Gpu) + Send>),
    /// A recording of an event to reach; a wait until another stream has reached one.
    Reach(u64),
    Wait(u64),
}

#[derive(Default)]
pub struct Stream {
    pending: VecDeque<Pending>,
    now_ns: u64,
    waited_ns: u64,
    /// The number of recorded events, and of those already waited for.
    recorded: u64,
    waited: u64,
}

/// A recorded event.
#[derive(Clone, Copy)]
pub struct Moment {
    stream: usize,
    recording: u64,
    ns: u64,
    /// Its index on the stream.
    number: u64,
}

impl Gpu {
    pub fn new_stream(&mut self) -> usize {
        let handle = self.new_handle();
        self.streams.insert(handle, Stream::default());
        handle
    }

    pub fn remove_stream(&mut self, stream: usize) {
        self.run_pending();
        assert!(stream != 0 && self.streams.remove(&stream).is_some());
    }

    fn stream(&mut self, stream: usize) -> &mut Stream {
        let known = self.streams.get_mut(&stream);
        known.unwrap_or_else(|| panic!("no stream {stream}"))
    }

    /// Keeps a stream busy for `ns`, and longer if it is the first time.
    pub fn work(&mut self, stream: usize, ns: u64, is_first: bool) {
        self.stream(stream).now_ns += if is_first { ns + LOADING_NS } else { ns };
    }

    /// Queues work on a stream.
    pub fn enqueue(&mut self, stream: usize, work: impl FnOnce(&mut Gpu) + Send + 'static) {
        self.push(stream, Pending::Work(Box::new(work)));
    }

    /// Queues a copy or a message.
    pub fn enqueue_copy(&mut self, stream: usize, copy: impl FnOnce(&mut Gpu) + Send + 'static) {
        self.push(stream, Pending::Copy(Box::new(copy)));
    }

    /// Makes a stream wait for an event's latest recording.
    pub fn hold_back(&mut self, stream: usize, event: usize) {
        let moment = self.events[&event].expect("an event that was recorded");
        self.push(stream, Pending::Wait(moment.recording));
    }

    fn push(&mut self, stream: usize, pending: Pending) {
        self.stream(stream).pending.push_back(pending);
        match self.setting("deferred") {
            0 => self.run_pending(),
            3 => self.run_all_but(|next| matches!(next, Pending::Copy(_))),
            4 => self.run_all_but(|next| matches!(next, Pending::Work(_))),
            _ => {}
        }
    }

    fn run_all_but(&mut self, is_late: impl Fn(&Pending) -> bool) {
        let is_held = |stream: &Stream| stream.pending.front().is_some_and(&is_late);
        let order: Vec<usize> = self.streams.keys().copied().collect();
        let next = |gpu: &Gpu| {
            let mut order = order.iter();
            let can = |&&stream: &&usize| gpu.can_go_on(stream) && !is_held(&gpu.streams[&stream]);
            order.find(can).copied()
        };
        while let Some(stream) = next(self) {
            self.go_on(stream);
        }
    }

    /// Runs all pending work of the streams, in the order that `deferred` sets.
    pub fn run_pending(&mut self) {
        let mut order: Vec<usize> = self.streams.keys().copied().collect();
        if self.setting("deferred") == 2 {
            order.reverse();
        }
        while let Some(&stream) = order.iter().find(|&&stream| self.can_go_on(stream)) {
            self.go_on(stream);
        }
        let is_idle = |stream: &Stream| stream.pending.is_empty();
        assert!(
            self.streams.values().all(is_idle),
            "streams wait for each other"
        );
    }

    /// Runs a stream's next entry.
    fn go_on(&mut self, stream: usize) {
        match self.stream(stream).pending.pop_front() {
            Some(Pending::Work(work) | Pending::Copy(work)) => work(self),
            Some(Pending::Reach(recording)) => {
                self.reached.insert(recording);
            }
            Some(Pending::Wait(_)) | None => {}
        }
    }

    /// Runs a stream's work, to the end or until it reaches a recording, and of other streams'
    /// work only what it waits for.
    fn run_stream(&mut self, stream: usize, until: Option<u64>) {
        while until.is_none_or(|recording| !self.reached.contains(&recording)) {
            match self.streams[&stream].pending.front() {
                None => return,
                Some(&Pending::Wait(recording)) if !self.reached.contains(&recording) => {
                    let reaches = |pending: &Pending| matches!(pending, Pending::Reach(at) if *at == recording);
                    let mut streams = self.streams.iter();
                    let other = streams.find(|(_, other)| other.pending.iter().any(reaches));
                    let other = *other.expect("an event that was recorded").0;
                    assert_ne!(other, stream, "a stream waits for itself");
                    self.run_stream(other, Some(recording));
                }
                Some(_) => self.go_on(stream),
            }
        }
    }

    fn can_go_on(&self, stream: usize) -> bool {
        match self.streams[&stream].pending.front() {
            None => false,
            Some(Pending::Wait(recording)) => self.reached.contains(recording),
            Some(_) => true,
        }
    }

    /// Waits for all streams.
    pub fn wait_for_all(&mut self) {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.wait(stream));
    }

    pub fn wait(&mut self, stream: usize) {
        self.run_stream(stream, None);
        let waits = self.setting("waits") == 1;
        let stream = self.stream(stream);
        stream.waited = stream.recorded;
        if waits {
            thread::sleep(Duration::from_nanos(stream.now_ns - stream.waited_ns));
            stream.waited_ns = stream.now_ns;
        }
    }

    pub fn wait_for_event(&mut self, event: usize) {
        let moment = self.events[&event].expect("an event that was recorded");
        self.run_stream(moment.stream, Some(moment.recording));
    }

    /// Waits for an event as long as its launches take, as [`Gpu::wait`] does for a stream.
    pub fn wait_for_time_of(&mut self, event: usize) {
        self.wait_for_event(event);
        let moment = self.events[&event].expect("an event that was recorded");
        let waits = self.setting("waits") == 1;
        let stream = self.stream(moment.stream);
        stream.waited = stream.waited.max(moment.number);
        if waits && moment.ns > stream.waited_ns {
            thread::sleep(Duration::from_nanos(moment.ns - stream.waited_ns));
            stream.waited_ns = moment.ns;
        }
    }

    pub fn new_event(&mut self) -> usize {
        let handle = self.new_handle();
        self.events.insert(handle, None);
        handle
    }

    pub fn remove_event(&mut self, event: usize) {
        assert!(self.events.remove(&event).is_some(), "no event {event}");
    }

    pub fn record(&mut self, event: usize, stream: usize) {
        let on = self.stream(stream);
        on.recorded += 1;
        let (ns, number) = (on.now_ns, on.recorded);
        self.recordings += 1;
        let recording = self.recordings;
        let moment = Moment {
            stream,
            recording,
            ns,
            number,
        };
        self.push(stream, Pending::Reach(recording));
        let known = self.events.insert(event, Some(moment));
        assert!(known.is_some(), "no event {event}");
        self.log(format_args!("record stream={stream} ns={ns}"));
    }

    pub fn milliseconds_between(&self, start: usize, end: usize) -> Result<f32, u32> {
        let [start, end] = [start, end].map(|event| self.events[&event]);
        let (start, end) = start.zip(end).ok_or(INVALID_VALUE)?;
        let has_ended = |event: Moment| event.number <= self.streams[&event.stream].waited;
        match has_ended(start) && has_ended(end) {
            true => Ok(((end.ns as f64 - start.ns as f64) / 1e6) as f32),
            false => Err(NOT_READY),
        }
    }
}
