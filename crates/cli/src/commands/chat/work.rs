//! Running something to its end, with what happens on the screen and the keys that are pressed meanwhile.

use std::time::Duration;

use foldline_agent_session::{AgentSession, Delivery, Prompt, Prompted, SessionError};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};

use super::command::Command;
use super::keys::{Key, Keys};
use super::screen::Mode;
use super::{Chat, Kind};

/// How often what moves is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What is typed while something runs.
#[derive(Default)]
struct Aside {
    line: String,
    /// Commands, for afterwards.
    commands: Vec<Command>,
    /// Whether something was said that waits for its turn.
    said: bool,
    /// How often the user pressed Ctrl-C.
    interrupts: u32,
}

impl Chat {
    /// Runs an operation, and tells why a request failed that it led to.
    pub(super) fn work<T>(&mut self, operation: impl Future<Output = T>) -> T {
        let done = self.run(operation);
        if let Some(failure) = self.screen.failure.take() {
            self.screen.error(&failure);
        }
        done
    }

    /// Runs an operation, and what follows from it, to its end. Esc cancels what is running, a typed line waits for its
    /// turn.
    pub(super) fn run<T>(&mut self, operation: impl Future<Output = T>) -> T {
        let (session, screen) = (&self.session, &mut self.screen);
        let kind = self.kind;
        let (done, mut aside) = self.runtime.block_on(async {
            let mut events = session.subscribe();
            let (mut keys, mode) = match kind {
                Kind::Terminal => match Keys::of_terminal() {
                    Ok(keys) => (keys, Mode::Raw),
                    Err(_) => (Keys::of_signals(), Mode::Cooked),
                },
                Kind::Stream => (Keys::of_signals(), Mode::Cooked),
            };
            screen.begin(mode);
            let operation = async {
                let done = operation.await;
                // What was said meanwhile gets its turn.
                session.wait_for_idle().await;
                done
            };
            let mut operation = std::pin::pin!(operation);
            let mut clock = tokio::time::interval(TICK);
            let mut aside = Aside::default();
            let mut said: FuturesUnordered<BoxFuture<'static, Said>> = FuturesUnordered::new();
            let mut finished = None;
            let done = loop {
                if said.is_empty()
                    && let Some(done) = finished.take()
                {
                    break done;
                }
                tokio::select! {
                    done = &mut operation, if finished.is_none() => finished = Some(done),
                    Some(event) = events.recv() => screen.show(&event),
                    Some((text, accepted)) = said.next(), if !said.is_empty() => match accepted {
                        // From now on it is in the session, and what is cancelled leaves it there.
                        Ok(Prompted::Queued) => screen.note(&waits(session, &text)),
                        Ok(Prompted::Ran(_)) => {}
                        Err(error) => {
                            screen.error(&format!("Failed to send queued message: {error}"));
                            aside.line = text;
                        }
                    },
                    key = keys.next() => match key {
                        Key::Cancel => cancel(session),
                        Key::Interrupt => {
                            aside.interrupts += 1;
                            cancel(session);
                        }
                        Key::Text(text) => aside.line.push_str(&text),
                        Key::Back => {
                            aside.line.pop();
                        }
                        Key::Enter => {
                            let text = std::mem::take(&mut aside.line);
                            match Command::parse(&text) {
                                Command::Nothing => {}
                                Command::Say(text) => {
                                    aside.said = true;
                                    said.push(queued(session.clone(), text).boxed());
                                }
                                command => {
                                    screen.note(&format!("{} waits until this is done", text.trim()));
                                    aside.commands.push(command);
                                }
                            }
                        }
                    },
                    _ = clock.tick() => {}
                }
                screen.typed(&aside.line);
            };
            while let Ok(event) = events.try_recv() {
                screen.show(&event);
            }
            screen.end();
            drop(keys);
            (done, aside)
        });
        self.afterwards(&mut aside);
        done
    }

    /// What was typed meanwhile and is not done with.
    fn afterwards(&mut self, aside: &mut Aside) {
        self.screen.said = None;
        self.leaves |= aside.interrupts > 1;
        self.later.extend(aside.commands.drain(..));
        let mut left = Vec::new();
        if aside.said && self.session.state().pending_message_count > 0 {
            // It was cancelled before their turn came.
            match self.runtime.block_on(self.session.clear_queue()) {
                Ok((steering, following)) => left.extend(steering.into_iter().chain(following)),
                Err(error) => self.complain_of(&error),
            }
        }
        left.extend(Some(std::mem::take(&mut aside.line)).filter(|line| !line.trim().is_empty()));
        if !left.is_empty() {
            self.draft = Some(left.join("\n"));
        }
    }
}

fn waits(session: &AgentSession, text: &str) -> String {
    if session.state().is_compacting {
        format!("Queued message for after compaction: {text}")
    } else {
        format!("Queued message: {text}")
    }
}

/// What was said while something ran, and what became of it.
type Said = (String, Result<Prompted, SessionError>);

/// Says something while something runs.
async fn queued(session: AgentSession, text: String) -> Said {
    let prompt = Prompt::text(text.clone()).queued_as(Delivery::Steer);
    (text, session.prompt(prompt).await)
}

/// Cancels exactly what is in the foreground; otherwise the run.
fn cancel(session: &AgentSession) {
    let is_part = session.abort_compaction()
        || session.abort_branch_summary()
        || session.abort_handoff()
        || session.abort_retry();
    if !is_part {
        session.abort();
    }
}
