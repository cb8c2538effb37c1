//! The calls of an answer: each gets exactly one result, and the results stand in the order of the calls (spec
//! "Orchestrator and clients", 1.3; R04).

use std::sync::{Arc, Mutex, PoisonError};

use foldline_session_model::model_call::{ArgumentsState, ToolCall, ToolOutcome};
use foldline_session_store::Artifacts;
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, Interrupt};
use crate::event::Event;
use crate::hooks::{HookContext, HookEvent, ToolCallEvent, ToolResultEvent, ToolVerdict};
use crate::journal::{CommitError, Group, Pending, now_ms};
use crate::message;
use crate::queue::Delivery;
use crate::shared::within_grace;
use crate::tool::{AfterTool, Concurrency, Spill, Tool, ToolOutput, ToolRun};

/// The result of a call that steering made needless.
const SKIPPED: &str = "Skipped due to queued user message.";
/// The result of a call that a cancel came before.
const CANCELLED: &str = "Cancelled before the tool ran.";
/// The result of a call that did not heed a cancel.
const LEFT_BEHIND: &str = "Cancelled while the tool ran; what it did until then is not known.";
/// The result of a call whose arguments are not whole.
const CUT: &str = "The arguments of this call were cut off or are no JSON object, so the tool did not run. Call it again with whole arguments.";

/// What the results say about the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterCalls {
    /// The model reads them.
    Continue,
    /// Every call says that the run ends.
    EndRun,
}

/// Keeps long output as artifacts of the session.
struct SessionSpill {
    artifacts: Mutex<Artifacts>,
}

impl Spill for SessionSpill {
    fn spill(&self, tool: &str, text: &str) -> Option<String> {
        let mut artifacts = self.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
        match artifacts.save(tool, text) {
            Ok(stored) => Some(format!("artifact://{}", stored.id)),
            Err(error) => {
                tracing::warn!(%error, "long output could not be kept");
                None
            }
        }
    }
}

impl Core {
    /// Runs the calls of an answer and records their results.
    ///
    /// # Errors
    /// The results could not be written.
    pub(crate) async fn run_calls(
        &mut self,
        calls: &[ToolCall<'static>],
        cancel: &CancellationToken,
    ) -> Result<AfterCalls, CommitError> {
        let spill = SessionSpill {
            artifacts: Mutex::new(
                self.shared
                    .journal()
                    .store()
                    .artifacts(self.shared.journal().path()),
            ),
        };
        let mut outputs: Vec<ToolOutput> = Vec::with_capacity(calls.len());
        let mut at = 0;
        while at < calls.len() {
            if cancel.is_cancelled() {
                outputs.push(ToolOutput::error(CANCELLED));
                at += 1;
                continue;
            }
            let steered = at > 0
                && self.options.settings.interrupt == Interrupt::Immediate
                && !self.shared.queues().next(Delivery::Steer).is_empty();
            if steered {
                outputs.push(ToolOutput::error(SKIPPED));
                at += 1;
                continue;
            }
            // Calls that may run side by side do; one that may not waits for those before it.
            let batch = calls
                .get(at..)
                .unwrap_or_default()
                .iter()
                .enumerate()
                .take_while(|(i, call)| *i == 0 || (self.is_parallel(call) && self.is_parallel(&calls[at])))
                .map(|(_, call)| call);
            let running = batch.map(|call| self.run_call(call, cancel, &spill));
            let finished = futures::future::join_all(running).await;
            at += finished.len().max(1);
            outputs.extend(finished);
        }
        self.record_results(calls, &outputs).await?;
        let ends = !outputs.is_empty() && outputs.iter().all(|output| output.then == AfterTool::EndRun);
        Ok(if ends {
            AfterCalls::EndRun
        } else {
            AfterCalls::Continue
        })
    }

    async fn record_results(
        &mut self,
        calls: &[ToolCall<'static>],
        outputs: &[ToolOutput],
    ) -> Result<(), CommitError> {
        let entries = calls
            .iter()
            .zip(outputs)
            .map(|(call, output)| Pending::from(message::tool_result(&call.id, &call.name, output, now_ms())))
            .collect();
        let committed = self
            .commit(Group {
                entries,
                ..Group::default()
            })
            .await?;
        for (entry, output) in committed.ids.into_iter().zip(outputs) {
            self.shared.emit(Event::MessageStart { role: "toolResult" });
            self.shared.emit(Event::MessageEnd {
                role: "toolResult",
                entry_id: Some(entry),
                text: message::text_of(&output.blocks),
                usage: None,
                error_message: None,
            });
        }
        Ok(())
    }

    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.options.tools.iter().find(|tool| tool.spec().name == name)
    }

    fn is_parallel(&self, call: &ToolCall<'_>) -> bool {
        self.tool(&call.name)
            .is_none_or(|tool| tool.concurrency() == Concurrency::Parallel)
    }

    async fn run_call(
        &self,
        call: &ToolCall<'static>,
        cancel: &CancellationToken,
        spill: &dyn Spill,
    ) -> ToolOutput {
        self.shared.emit(Event::ToolExecutionStart {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.to_string(),
            args: call.arguments.clone(),
        });
        let output = self.answer_call(call, cancel, spill).await;
        self.shared.emit(Event::ToolExecutionEnd {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.to_string(),
            outcome: output.outcome,
        });
        output
    }

    async fn answer_call(
        &self,
        call: &ToolCall<'static>,
        cancel: &CancellationToken,
        spill: &dyn Spill,
    ) -> ToolOutput {
        let Some(tool) = self.tool(&call.name) else {
            return ToolOutput::error(format!("Tool {} not found", call.name));
        };
        if call.state == ArgumentsState::Unusable {
            return ToolOutput::error(CUT);
        }
        let cx = self.hook_context(cancel);
        let verdict = self
            .options
            .hooks
            .tool_call(&cx, || ToolCallEvent {
                tool_name: &call.name,
                tool_call_id: &call.id,
                input: call.arguments.clone(),
            })
            .await;
        if let ToolVerdict::Block { reason } = verdict {
            return ToolOutput::error(reason);
        }
        let progress = |text: &str| {
            self.shared.emit(Event::ToolExecutionUpdate {
                tool_call_id: call.id.to_string(),
                text: text.to_owned(),
            });
        };
        let run = tool.run(ToolRun {
            call_id: &call.id,
            arguments: &call.arguments,
            cwd: &self.options.cwd,
            cancel: cancel.clone(),
            spill,
            progress: &progress,
        });
        let output = match within_grace(cancel, std::panic::AssertUnwindSafe(run).catch_unwind()).await {
            None => ToolOutput::error(LEFT_BEHIND),
            Some(Ok(output)) => output,
            Some(Err(_)) => ToolOutput::error(format!("Tool {} failed unexpectedly", call.name)),
        };
        self.after_hooks(call, output, &cx).await
    }

    /// What hooks make of a result; fields that they do not set stay.
    async fn after_hooks(
        &self,
        call: &ToolCall<'static>,
        mut output: ToolOutput,
        cx: &HookContext,
    ) -> ToolOutput {
        if !self.options.hooks.wants(HookEvent::ToolResult) {
            return output;
        }
        let content = message::blocks_json(&output.blocks);
        let changes = self
            .options
            .hooks
            .tool_result(cx, || ToolResultEvent {
                tool_name: &call.name,
                tool_call_id: &call.id,
                input: call.arguments.clone(),
                content,
                details: output.details.clone(),
                is_error: output.outcome == ToolOutcome::Error,
            })
            .await;
        if let Some(blocks) = changes.content.as_ref().and_then(message::blocks_of_json) {
            output.blocks = blocks;
        }
        if changes.details.is_some() {
            output.details = changes.details;
        }
        match changes.is_error {
            Some(true) => output.outcome = ToolOutcome::Error,
            Some(false) => output.outcome = ToolOutcome::Success,
            None => {}
        }
        output
    }
}
