//! What the table of compaction-core reads of a session (spec "Orchestrator and clients", 3.1 and 3.3).

use super::*;

impl Core {
    /// What the table says about the session as it is, and whether the context is over the window.
    pub(super) fn decision(
        &mut self,
        boundary: Boundary,
        pending: Tokens,
        prune: Prune,
    ) -> Result<(Action, bool), String> {
        let log = self.checked_log().map_err(|error| error.to_string())?;
        let context = context(&log, self.options.profile).map_err(|error| error.to_string())?;
        let limits = self.limits();
        let size = self.size(&context, pending);
        if std::mem::take(&mut self.live.quiet_unmeasured) {
            self.live.quiet_at = Some(size.tokens);
        }
        let last = self.last_answer(&context);
        let recovered = self.live.overflow_guard == Guard::Used
            || boundary == Boundary::AfterRun
                && last.is_some_and(|last| last.overflow == Overflow::Failed)
                && recovered(&context);
        let over_window = limits
            .as_ref()
            .is_some_and(|limits| size.tokens > limits.window());
        let snapshot = Snapshot {
            boundary,
            settings: &self.options.settings.compaction,
            limits: limits.as_ref(),
            size,
            last,
            overflow_guard: if recovered { Guard::Used } else { Guard::Armed },
            breaker: self.live.breaker(),
            promotion: self.promotion(),
            prune,
            quiet_at: self.live.quiet_at,
            emergency: if boundary == Boundary::BeforePrompt {
                emergency(&context)
            } else {
                None
            },
        };
        Ok((decide(&snapshot), over_window))
    }

    pub(super) fn last_answer(&self, context: &Context<'_>) -> Option<LastAnswer> {
        let (at, message) = last_assistant(context)?;
        let entry = context.log.id(context.items.get(at)?.source);
        let current = self.model_ref();
        let is_current =
            current.is_some_and(|model| message.provider == *model.provider && message.model == *model.id);
        Some(LastAnswer {
            stop: message.stop_reason,
            overflow: self.overflow(entry, message),
            model: if is_current {
                AnswerModel::Current
            } else {
                AnswerModel::Other
            },
            age: if context.kept_tail.contains(&at) {
                Age::BeforeCompaction
            } else {
                Age::AfterCompaction
            },
        })
    }

    pub(super) fn overflow(&self, entry: &str, message: &AssistantMessage<'_>) -> Overflow {
        if message.stop_reason == StopReason::Error {
            return match &self.live.last_failure {
                Some((failed, class)) if failed.as_str() == entry => match class {
                    class if class.wants_smaller_request() => Overflow::Failed,
                    ErrorClass::Other(OtherCause::Refused) => Overflow::Refused,
                    _ => Overflow::No,
                },
                // Another process met it: only its words are left.
                _ => match message.error_message.as_deref().map(class_of_text) {
                    Some(class) if class.wants_smaller_request() => Overflow::Failed,
                    _ => Overflow::No,
                },
            };
        }
        let window = self.model().and_then(|model| self.hard_window(model.profile()));
        let (Some(usage), Some(window), Some(stop)) = (message.usage, window, stop_of(message.stop_reason))
        else {
            return Overflow::No;
        };
        match usage.shows_overflow(stop, window) {
            // An answer without room for a word is no answer.
            true if message.content.is_visible() => Overflow::Silent,
            true => Overflow::Failed,
            false if self.live.length_guard == Guard::Armed && self.is_cut_by_window(message) => {
                Overflow::Silent
            }
            false => Overflow::No,
        }
    }

    /// Whether an answer broke off because the window was full: before the output that the model may write, which did
    /// not fit behind the prompt. The answer is good as far as it goes, so it stays.
    pub(super) fn is_cut_by_window(&self, message: &AssistantMessage<'_>) -> bool {
        let Some(profile) = self.model().map(|model| model.profile()) else {
            return false;
        };
        let (Some(usage), Some(window)) = (message.usage, self.hard_window(profile)) else {
            return false;
        };
        let has_no_room = match profile.max_output {
            Some(most) => usage.output < most && usage.prompt() + most > window,
            None => (usage.prompt() + usage.output).get() >= window.get() / 100 * 99,
        };
        message.stop_reason == StopReason::Length && message.content.is_visible() && has_no_room
    }

    /// Whether one more request fits after an answer that was cut off. A turn has one recovery, so after it only what is
    /// known to fit goes on.
    pub(super) fn has_room_to_go_on(&self) -> bool {
        let Some(profile) = self.model().map(|model| model.profile()) else {
            return false;
        };
        if !self.live.windows.contains_key(&profile.model_ref()) {
            return self.live.overflow_guard == Guard::Armed;
        }
        let window = self.hard_window(profile);
        Limits::new(window, &self.options.settings.compaction, Tokens::ZERO)
            .is_none_or(|limits| self.size_now() <= Headroom::most_for_a_retry(&limits))
    }

    pub(super) fn promotion(&self) -> Promotion {
        let larger = self.options.models.promotion.as_ref().is_some_and(|target| {
            let window = |model: &std::sync::Arc<dyn foldline_llm_client::LanguageModel>| {
                model.profile().context_window.unwrap_or(Tokens::ZERO)
            };
            let current = self.model().map_or(Tokens::ZERO, window);
            current > Tokens::ZERO
                && window(target) > current
                && self.model_ref() != Some(target.profile().model_ref())
        });
        if larger && !self.live.promoted {
            Promotion::Available
        } else {
            Promotion::Unavailable
        }
    }
}

/// The newest answer of a context and its place.
pub(super) fn last_assistant<'c, 'l>(context: &'c Context<'l>) -> Option<(usize, &'c AssistantMessage<'l>)> {
    let mut items = context.items.iter().enumerate().rev();
    items.find_map(|(at, item)| match &item.message {
        Message::Assistant(message) => Some((at, &**message)),
        _ => None,
    })
}

/// Whether the turn has had a compaction because of an overflow: the log knows it after a resume too (R01).
pub(super) fn recovered(context: &Context<'_>) -> bool {
    for ix in context.path.iter().rev() {
        match context.log.kind(*ix) {
            EntryKind::Message => {
                if matches!(context.log.message(*ix).as_deref(), Some(Message::User(_))) {
                    return false;
                }
            }
            EntryKind::Compaction => return is_of_overflow(context.log.raw_line(*ix)),
            _ => {}
        }
    }
    false
}

/// Whether a compaction entry says that an overflow was its reason.
pub(super) fn is_of_overflow(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Entry {
        details: Option<Details>,
    }
    #[derive(serde::Deserialize)]
    struct Details {
        foldline: Option<Record>,
    }
    #[derive(serde::Deserialize)]
    struct Record {
        reason: String,
    }
    let entry = serde_json::from_slice::<Entry>(line).ok();
    entry
        .and_then(|entry| entry.details?.foldline)
        .is_some_and(|record| record.reason == reason_name::name(Reason::Overflow))
}

/// The resource limit that a context exceeds, if any.
pub(super) fn emergency(context: &Context<'_>) -> Option<EmergencyReason> {
    let text: usize = context
        .items
        .iter()
        .filter_map(|item| item.message.content())
        .flat_map(foldline_session_model::message::Content::texts)
        .map(str::len)
        .sum();
    let bytes = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    EmergencyLimits::for_memory(None).exceeded_by(&ResourceSample {
        provider_bytes: bytes(text),
        message_count: bytes(context.items.len()),
        image_bytes: bytes(media_bytes(context)),
        ..ResourceSample::default()
    })
}
