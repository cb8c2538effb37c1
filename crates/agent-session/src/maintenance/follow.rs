//! A compaction at a boundary, what follows it, and an overflow that stays (spec "Orchestrator and clients", 3.7, 9).

use super::*;

impl Core {
    /// Compacts because of a boundary, and decides what follows.
    pub(super) async fn compact_at(
        &mut self,
        lease: &Lease,
        boundary: Boundary,
        due: Compaction,
        pending: Tokens,
        over_window: bool,
    ) -> Maintained {
        let mid_turn = boundary == Boundary::BetweenRequests;
        if due.reason == Reason::Overflow {
            self.live.overflow_guard = Guard::Used;
            self.live.length_guard = Guard::Used;
        }
        let order = Order {
            mid_turn,
            pending,
            ..Order::automatic(due.reason, due.urgency)
        };
        let ended = self.compact(lease, order).await;
        self.live.compacted_mid_run = mid_turn && ended.came == Came::Committed;
        // What was not compacted before a prompt may be with it (spec, 3.4).
        if boundary == Boundary::BeforePrompt && ended.came == Came::Skipped {
            self.live.overflow_guard = Guard::Armed;
        }
        // What is about to be sent was part of what the attempt was about.
        if let Some(quiet_at) = &mut self.live.quiet_at {
            *quiet_at += pending;
        }
        let follow = self.follow(due, &ended, pending);
        let takeover = lease.takeover();
        let Ended {
            mut end,
            came,
            residual,
        } = ended;
        end.will_retry = follow == Continuation::Retry;
        if let Continuation::Stop(stopped) = follow {
            end.continuation_skip_reason = stopped.skip_reason().filter(|_| came == Came::Committed);
        }
        end.manual_takeover_pending = takeover;
        // Before a prompt its request is sent all the same, and tells whether the overflow stays.
        let unresolved = boundary == Boundary::AfterRun
            && due.reason == Reason::Overflow
            && matches!(came, Came::Failed | Came::Skipped);
        if unresolved {
            end.unresolved_overflow = true;
            let sizes = self.sizes();
            let cause = end.error_message.take().unwrap_or_default();
            end.error_message = Some(match came {
                Came::Skipped if end.unpaid.is_none() => format!("{NOTHING_ELIGIBLE} ({cause}){sizes}"),
                Came::Skipped => format!("Context overflow recovery failed: {cause}.{sizes}"),
                _ => format!("{cause}{sizes}"),
            });
        }
        // Between two requests the next one must fit; nobody sends what is known not to (D16).
        let stop = if mid_turn {
            self.refusal(came, residual, over_window, &end)
        } else {
            None
        };
        if let Some(text) = &stop {
            end.error_message = Some(text.clone());
        }
        let failed = end.error_message.clone();
        self.shared.emit(Event::CompactionEnd(Box::new(end)));
        self.tell_follow(follow);
        if unresolved && boundary == Boundary::AfterRun {
            let text = failed.unwrap_or_default();
            return match self.fallback() {
                Fallback::Available if due.then == Then::Retry => {
                    self.next_model(&text);
                    Maintained::Compacted(Continuation::Retry)
                }
                _ if due.then == Then::Retry && follow != Continuation::Deliver => Maintained::Stop(text),
                _ => Maintained::Compacted(follow),
            };
        }
        match (stop, came) {
            (Some(_), Came::Cancelled) => Maintained::Cancelled,
            (Some(text), _) => Maintained::Stop(text),
            (None, Came::Cancelled) if lease.is_cancelled() => Maintained::Cancelled,
            _ => Maintained::Compacted(follow),
        }
    }

    /// Why the next request of a run is not sent after a compaction between two requests; `None`: it is sent.
    pub(super) fn refusal(
        &self,
        came: Came,
        residual: Tokens,
        over_window: bool,
        end: &CompactionEnd,
    ) -> Option<String> {
        match came {
            Came::Cancelled => Some(
                "Post-tool context compaction was cancelled before the next provider request.".to_owned(),
            ),
            Came::Committed => self.still_over(residual),
            Came::Failed | Came::Skipped | Came::Vetoed if over_window => Some(format!(
                "Post-tool context compaction failed before the next provider request: {}",
                end.error_message
                    .as_deref()
                    .unwrap_or("nothing eligible to compact")
            )),
            Came::Failed | Came::Skipped | Came::Vetoed => None,
        }
    }

    /// Why a request of this size is not sent behind a compaction within a run; `None`: it fits.
    pub(crate) fn still_over(&self, projected: Tokens) -> Option<String> {
        let window = self.limits()?.window();
        (projected > window).then(|| {
            format!(
                "Post-tool context remains over the provider hard input limit after compaction ({projected} > {window} \
                 tokens); the next provider request was not sent."
            )
        })
    }

    /// What follows a compaction.
    pub(super) fn follow(&mut self, due: Compaction, ended: &Ended, pending: Tokens) -> Continuation {
        if ended.came != Came::Committed {
            // What the context shows does not matter then.
            let waiting = self.waiting_messages();
            return continuation(&Situation::without_commit(
                due.reason, due.then, ended.came, waiting,
            ));
        }
        let limits = self.limits();
        let situation = Situation {
            reason: due.reason,
            then: due.then,
            came: ended.came,
            evidence: self.evidence(),
            tail: self.tail(),
            headroom: Headroom::after(ended.residual + pending, due.then, limits.as_ref()),
            auto_continue: self.auto_continue(),
        };
        continuation(&situation)
    }

    pub(super) fn auto_continue(&self) -> AutoContinue {
        if self.options.settings.compaction.auto_continue {
            AutoContinue::On
        } else {
            AutoContinue::Off
        }
    }

    /// Says why nothing goes on, where a user may have expected it.
    pub(super) fn tell_follow(&self, follow: Continuation) {
        match follow {
            Continuation::Stop(Stopped::NoUnfinishedWork) => {
                self.shared
                    .events
                    .notice(NoticeLevel::Info, Some("auto-continue"), NO_UNFINISHED_WORK);
            }
            Continuation::Stop(Stopped::NoHeadroom) => self.shared.events.notice(
                NoticeLevel::Warning,
                Some("auto-continue"),
                "The compaction left too little room, so nothing goes on by itself",
            ),
            _ => {}
        }
    }

    fn waiting_messages(&self) -> Waiting {
        if self.shared.queues().is_empty() {
            Waiting::Nothing
        } else {
            Waiting::Messages
        }
    }

    /// Evidence of unfinished work, read now (D13).
    pub(crate) fn evidence(&self) -> Evidence {
        let work = state_lines::read(&*self.options.work);
        let last_stop = context(&self.log, self.options.profile).ok().and_then(|context| {
            context.items.iter().rev().find_map(|item| match &item.message {
                Message::Assistant(message) => stop_of(message.stop_reason),
                _ => None,
            })
        });
        Evidence {
            waiting: self.waiting_messages(),
            last_stop,
            goal: work.goal_says,
            open_todos: work.open_todos.len(),
            active_workflows: work.active_workflows,
        }
    }

    /// What the context ends in; failed answers are no answers.
    pub(crate) fn tail(&self) -> Tail {
        let Ok(context) = context(&self.log, self.options.profile) else {
            return Tail::Answered;
        };
        let last = context
            .items
            .iter()
            .rev()
            .map(|item| &item.message)
            .find(|message| match message {
                Message::Assistant(answer) => {
                    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                        && answer.content.is_visible()
                }
                message => message.is_visible(),
            });
        match last {
            None
            | Some(
                Message::Assistant(_)
                | Message::CompactionSummary(_)
                | Message::BranchSummary(_)
                | Message::VerbatimBoundary(_)
                | Message::Unknown(_),
            ) => Tail::Answered,
            Some(_) => Tail::Resumable,
        }
    }

    /// Whether the newest answer called tools whose results are missing: a run was cut off there.
    pub(crate) fn has_open_calls(&self) -> bool {
        let Ok(context) = context(&self.log, self.options.profile) else {
            return false;
        };
        let mut answered = 0;
        for item in context.items.iter().rev() {
            match &item.message {
                Message::ToolResult(_) => answered += 1,
                Message::Assistant(message) => return message.content.tool_calls().count() > answered,
                _ => {}
            }
        }
        false
    }

    /// An overflow that stays. Told once; the same request is not sent again.
    pub(super) fn unresolved(&mut self, unresolved: Unresolved, boundary: Boundary) -> Maintained {
        let text = match unresolved {
            Unresolved::GuardUsed => GUARD_USED,
            Unresolved::Disabled => DISABLED,
            Unresolved::BreakerOpen => BREAKER_OPEN,
        };
        // Before a prompt, the prompt is sent all the same, and its own failure decides.
        if boundary == Boundary::AfterRun && self.fallback() == Fallback::Available {
            self.next_model(text);
            return Maintained::Compacted(Continuation::Retry);
        }
        let text = format!("{text}{}", self.sizes());
        if unresolved == Unresolved::Disabled
            && self.options.settings.compaction.auto_continue
            && self.tail() == Tail::Answered
            && self.evidence().shows_unfinished_work()
        {
            return Maintained::Compacted(Continuation::AutoContinue);
        }
        let action = self.action();
        if unresolved != Unresolved::Disabled {
            self.shared
                .emit(Event::CompactionStart(crate::event::CompactionStart {
                    reason: Reason::Overflow,
                    action,
                    mid_turn: false,
                }));
            self.shared.emit(Event::CompactionEnd(Box::new(CompactionEnd {
                error_message: Some(text.clone()),
                unresolved_overflow: true,
                ..CompactionEnd::new(Reason::Overflow, action, OperationOutcome::Failed)
            })));
        }
        Maintained::Stop(text)
    }

    /// The sizes behind an overflow that stays: what a user can do something about (FB-009, FB-010).
    pub(super) fn sizes(&self) -> String {
        let Some(window) = self.model().and_then(|model| self.hard_window(model.profile())) else {
            return String::new();
        };
        let overhead = self.overhead();
        let mut text =
            format!(" The window holds {window} tokens; system text and tools take about {overhead}");
        if let Ok(context) = context(&self.log, self.options.profile) {
            let sizes = context
                .items
                .iter()
                .map(|item| (Heuristic.message(&item.message), item));
            if let Some((tokens, item)) = sizes.max_by_key(|(tokens, _)| *tokens) {
                let (id, role) = (context.log.id(item.source), item.message.role());
                text.push_str(&format!(", and the largest entry, {id} ({role}), {tokens}"));
            }
        }
        text.push('.');
        text
    }
}

pub(super) fn stop_of(stop: StopReason) -> Option<foldline_session_model::model_call::StopReason> {
    use foldline_session_model::model_call::StopReason as Call;
    Some(match stop {
        StopReason::Stop => Call::Stop,
        StopReason::Length => Call::Length,
        StopReason::ToolUse => Call::ToolUse,
        StopReason::Error => Call::Error,
        StopReason::Aborted => Call::Aborted,
        _ => return None,
    })
}
