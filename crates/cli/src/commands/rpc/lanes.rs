//! Which command is carried out when: ordinary ones strictly one after the other, those that steer what is in progress
//! beside them.
//!
//! A command that can begin begins before the next line is looked at, so that an abort right behind it cannot overtake
//! what it is meant for.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use foldline_agent_session::event::Event;
use foldline_agent_session::rpc::{self, Command, Lane, Request, Response};
use foldline_compaction_core::settings::Planner;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Host;
use crate::error::{ErrorKind, Status};
use crate::output;
use crate::signals::Signals;

/// What a command gives: data or nothing, or why it was not done.
pub(super) type Answer = Result<Option<Box<RawValue>>, String>;

/// A command that was taken from the input.
struct Job {
    id: Option<Box<RawValue>>,
    name: String,
    command: Command,
}

/// A command that has ended.
struct Finished {
    id: Option<Box<RawValue>>,
    name: String,
    lane: Lane,
    answer: Answer,
}

struct Lanes {
    host: Arc<Host>,
    /// Ordinary commands whose turn has not come.
    waiting: VecDeque<Job>,
    ordinary: bool,
    control: usize,
    tell: UnboundedSender<Finished>,
    events: UnboundedReceiver<Arc<Event>>,
    switches: u64,
    /// Nobody reads the output any more.
    is_deaf: bool,
}

/// How often what waits for a model is told that nobody listens any more.
const HANG_UP: Duration = Duration::from_millis(200);

/// Carries out the commands of standard input until it ends and everything is done; then nobody waits for models any
/// more. Ctrl-C cancels all.
pub(super) async fn serve(host: &Arc<Host>) -> Status {
    let mut lines = read_lines();
    let (tell, mut finished) = unbounded_channel();
    let mut lanes = Lanes {
        host: Arc::clone(host),
        waiting: VecDeque::new(),
        ordinary: false,
        control: 0,
        tell,
        events: host.session().subscribe(),
        switches: 0,
        is_deaf: false,
    };
    host.watch_idle();
    host.session().tell_startup().await;
    let status = carry_out(host, &mut lines, &mut finished, &mut lanes).await;
    host.session().tell_quit().await;
    lanes.drain();
    status
}

async fn carry_out(
    host: &Arc<Host>,
    lines: &mut UnboundedReceiver<Vec<u8>>,
    finished: &mut UnboundedReceiver<Finished>,
    lanes: &mut Lanes,
) -> Status {
    let mut signals = Signals::new();
    let mut is_open = true;
    while !lanes.is_deaf {
        let session = host.session();
        let is_over = !is_open && !lanes.ordinary && lanes.control == 0;
        tokio::select! {
            biased;
            line = lines.recv(), if is_open => match line {
                Some(line) => lanes.take(&line).await,
                None => {
                    is_open = false;
                    lanes.hang_up();
                }
            },
            Some(done) = finished.recv() => lanes.finish(done).await,
            Some(event) = lanes.events.recv() => lanes.write_event(&event),
            () = session.wait_for_idle(), if is_over => {
                lanes.drain();
                return Status::Done;
            }
            // What waited for its turn may have begun meanwhile.
            () = tokio::time::sleep(HANG_UP), if !is_open => lanes.hang_up(),
            () = signals.next() => {
                session.abort();
                session.wait_for_idle().await;
                lanes.drain();
                return Status::Ended(ErrorKind::Cancelled);
            }
        }
    }
    host.session().abort();
    host.session().wait_for_idle().await;
    Status::Done
}

impl Lanes {
    /// The client is gone: what waits for a model would wait for nobody. What needs none comes to its end by itself.
    fn hang_up(&self) {
        if self.host.setup.planner() == Planner::Model {
            self.host.session().abort();
        }
    }

    async fn take(&mut self, line: &[u8]) {
        let Request { id, name, command } = Request::parse(line);
        let command = match command {
            Ok(command) => command,
            Err(error) => return self.respond(id.as_deref(), &name, &Err(error)),
        };
        let lane = command.lane();
        let job = Job { id, name, command };
        match lane {
            Lane::Ordinary if self.ordinary => self.waiting.push_back(job),
            Lane::Ordinary => self.next_ordinary(job).await,
            Lane::Control => self.start(job, lane).await,
        }
    }

    /// Starts an ordinary command, and those behind it as long as they are done at once.
    async fn next_ordinary(&mut self, job: Job) {
        self.start(job, Lane::Ordinary).await;
        while !self.ordinary
            && let Some(job) = self.waiting.pop_front()
        {
            self.start(job, Lane::Ordinary).await;
        }
    }

    async fn start(&mut self, job: Job, lane: Lane) {
        let Job { id, name, command } = job;
        let mut work = Box::pin(Arc::clone(&self.host).execute(command));
        match futures::poll!(&mut work) {
            Poll::Ready(answer) => self.respond(id.as_deref(), &name, &answer),
            Poll::Pending => {
                match lane {
                    Lane::Ordinary => self.ordinary = true,
                    Lane::Control => self.control += 1,
                }
                let tell = self.tell.clone();
                tokio::spawn(async move {
                    let task = tokio::spawn(work);
                    let answer = task.await.unwrap_or_else(|error| Err(error.to_string()));
                    drop(tell.send(Finished {
                        id,
                        name,
                        lane,
                        answer,
                    }));
                });
            }
        }
    }

    async fn finish(&mut self, done: Finished) {
        self.respond(done.id.as_deref(), &done.name, &done.answer);
        match done.lane {
            Lane::Control => self.control -= 1,
            Lane::Ordinary => {
                self.ordinary = false;
                if let Some(job) = self.waiting.pop_front() {
                    self.next_ordinary(job).await;
                }
            }
        }
    }

    /// Writes an answer, after everything that happened before it.
    fn respond(&mut self, id: Option<&RawValue>, command: &str, answer: &Answer) {
        self.drain();
        let response = Response {
            id,
            r#type: "response",
            command,
            success: answer.is_ok(),
            data: answer.as_ref().ok().and_then(Option::as_deref),
            error: answer.as_ref().err().map(String::as_str),
        };
        if let Ok(text) = serde_json::to_string(&response) {
            self.write(&text);
        }
    }

    /// Writes all events so far; from then on it listens to the session that is current.
    fn drain(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.write_event(&event);
        }
        let switches = self.host.switches.load(Ordering::SeqCst);
        if switches != self.switches {
            self.switches = switches;
            self.events = self.host.session().subscribe();
        }
    }

    fn write_event(&mut self, event: &Event) {
        for line in rpc::event_lines(event) {
            self.write(&line);
        }
    }

    fn write(&mut self, text: &str) {
        self.is_deaf |= output::line(text).is_err();
    }
}

/// The lines of standard input. They end with a line feed only; a carriage return before it is left out, and so are
/// blank lines.
fn read_lines() -> UnboundedReceiver<Vec<u8>> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.is_empty() && sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
