//! The prompts, as files with variables; each can be replaced by the user.
//!
//! Templates hold instructions only. Transcripts and summaries are put beside a rendered prompt by plain concatenation,
//! so that no template engine ever touches them (CD6).

use minijinja::{Environment, UndefinedBehavior, Value, context};

/// The version of the prompts; entries record it.
pub const PROMPT_VERSION: u32 = 1;

/// What a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Prompt {
    /// The system text of every summary.
    System,
    /// A first summary.
    Summary,
    /// A summary that replaces an earlier one.
    Update,
    /// The beginning of a turn whose end is kept.
    TurnPrefix,
    /// A line or two for user interfaces.
    Short,
    /// The document that opens a new session.
    Handoff,
    /// The focus of a handoff that nobody asked for.
    HandoffFocus,
    /// A branch that was left.
    Branch,
    /// The words before the summary of a branch; stored with it.
    BranchPreamble,
    /// What sets unfinished work going again.
    AutoContinue,
    /// The rules of a request for ranges of lines to delete (seed 002).
    Ranges,
    /// The system text of such a request.
    RangesSystem,
}

impl Prompt {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::System,
        Self::Summary,
        Self::Update,
        Self::TurnPrefix,
        Self::Short,
        Self::Handoff,
        Self::HandoffFocus,
        Self::Branch,
        Self::BranchPreamble,
        Self::AutoContinue,
        Self::Ranges,
        Self::RangesSystem,
    ];

    /// The name: that of the file which replaces it, without `.md`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Summary => "summary",
            Self::Update => "update",
            Self::TurnPrefix => "turn-prefix",
            Self::Short => "short",
            Self::Handoff => "handoff",
            Self::HandoffFocus => "handoff-focus",
            Self::Branch => "branch",
            Self::BranchPreamble => "branch-preamble",
            Self::AutoContinue => "auto-continue",
            Self::Ranges => "ranges",
            Self::RangesSystem => "ranges-system",
        }
    }

    /// The prompt of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|prompt| prompt.name() == name)
    }

    const fn builtin(self) -> &'static str {
        match self {
            Self::System => include_str!("../prompts/system.md"),
            Self::Summary => include_str!("../prompts/summary.md"),
            Self::Update => include_str!("../prompts/update.md"),
            Self::TurnPrefix => include_str!("../prompts/turn-prefix.md"),
            Self::Short => include_str!("../prompts/short.md"),
            Self::Handoff => include_str!("../prompts/handoff.md"),
            Self::HandoffFocus => include_str!("../prompts/handoff-focus.md"),
            Self::Branch => include_str!("../prompts/branch.md"),
            Self::BranchPreamble => include_str!("../prompts/branch-preamble.md"),
            Self::AutoContinue => include_str!("../prompts/auto-continue.md"),
            Self::Ranges => include_str!("../prompts/ranges.md"),
            Self::RangesSystem => include_str!("../prompts/ranges-system.md"),
        }
    }
}

/// The variables of prompts. What is `None` is left out, with the sentences around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variables<'v> {
    /// What the user asked for beside the usual (`summary`, `update`, `turn-prefix`, `branch`).
    pub instructions: Option<&'v str>,
    /// Which part of a long conversation this is, from 1 (`summary`, `update`).
    pub part: Option<usize>,
    /// How many parts there are.
    pub parts: Option<usize>,
    /// A standing supplement (`handoff`).
    pub extension: Option<&'v str>,
    /// What to look at above all (`handoff`).
    pub focus: Option<&'v str>,
}

impl Variables<'_> {
    fn to_value(self) -> Value {
        context! {
            instructions => self.instructions,
            part => self.part,
            parts => self.parts,
            extension => self.extension,
            focus => self.focus,
        }
    }
}

/// All prompts, those of the user in place of ours.
#[derive(Debug)]
pub struct Prompts {
    environment: Environment<'static>,
}

/// Why a prompt cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// It is no valid template.
    #[error("the prompt {name} is no valid template: {cause}")]
    Syntax {
        /// The prompt.
        name: &'static str,
        /// What is wrong.
        cause: String,
    },
    /// It could not be filled.
    #[error("the prompt {name} could not be filled: {cause}")]
    Render {
        /// The prompt.
        name: &'static str,
        /// What is wrong.
        cause: String,
    },
}

impl Default for Prompts {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        // Prompts are no markup: nothing is escaped.
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        for prompt in Prompt::ALL {
            // Ours are constant and a test renders each; one that were broken would render as an error.
            drop(environment.add_template(prompt.name(), prompt.builtin()));
        }
        Self { environment }
    }
}

impl Prompts {
    /// Replaces a prompt by the user's text. It may use the same variables.
    ///
    /// # Errors
    /// [`PromptError::Syntax`] if the text is no valid template.
    pub fn replace(&mut self, prompt: Prompt, text: String) -> Result<(), PromptError> {
        self.environment
            .add_template_owned(prompt.name(), text)
            .map_err(|e| PromptError::Syntax {
                name: prompt.name(),
                cause: e.to_string(),
            })
    }

    /// The text of a prompt.
    ///
    /// # Errors
    /// [`PromptError::Render`] if a replaced prompt asks for something that does not exist.
    pub fn render(&self, prompt: Prompt, variables: &Variables<'_>) -> Result<String, PromptError> {
        let text = self
            .environment
            .get_template(prompt.name())
            .and_then(|template| template.render(variables.to_value()))
            .map_err(|e| PromptError::Render {
                name: prompt.name(),
                cause: e.to_string(),
            })?;
        Ok(text.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_renders_bare_and_with_all_variables() {
        let prompts = Prompts::default();
        let all = Variables {
            instructions: Some("look at <the> \"tests\""),
            part: Some(2),
            parts: Some(3),
            extension: Some("name the ticket"),
            focus: Some("the parser"),
        };
        for prompt in Prompt::ALL {
            assert_eq!(Prompt::from_name(prompt.name()), Some(prompt));
            let bare = prompts.render(prompt, &Variables::default()).unwrap();
            assert!(
                !bare.is_empty() && !bare.contains("{%") && !bare.contains("{{"),
                "{}",
                prompt.name()
            );
            insta::assert_snapshot!(prompt.name(), prompts.render(prompt, &all).unwrap());
        }
    }

    #[test]
    fn summaries_ask_for_the_required_sections() {
        let prompts = Prompts::default();
        for prompt in [Prompt::Summary, Prompt::Update] {
            let text = prompts.render(prompt, &Variables::default()).unwrap();
            for section in [
                "Goal",
                "Constraints & Preferences",
                "Progress",
                "Done",
                "In Progress",
                "Blocked",
            ] {
                assert!(text.contains(section), "{section}");
            }
            for section in ["Key Decisions", "Next Steps", "Critical Context"] {
                assert!(text.contains(section), "{section}");
            }
        }
    }

    #[test]
    fn a_handoff_names_the_extension_before_the_focus() {
        let both = Variables {
            extension: Some("EXT"),
            focus: Some("FOC"),
            ..Variables::default()
        };
        let text = Prompts::default().render(Prompt::Handoff, &both).unwrap();
        let at = |needle| text.find(needle).unwrap();
        assert!(at("## Next Steps") < at("EXT") && at("EXT") < at("Additional focus: FOC"));
    }

    #[test]
    fn users_replace_prompts() {
        let mut prompts = Prompts::default();
        prompts
            .replace(Prompt::Short, "One line about {{ instructions }}.".into())
            .unwrap();
        let variables = Variables {
            instructions: Some("it"),
            ..Variables::default()
        };
        assert_eq!(
            prompts.render(Prompt::Short, &variables).unwrap(),
            "One line about it."
        );
        let broken = prompts.replace(Prompt::Short, "{% if %}".into());
        assert!(matches!(broken, Err(PromptError::Syntax { name: "short", .. })));
        assert_eq!(
            prompts.render(Prompt::Short, &variables).unwrap(),
            "One line about it."
        );
    }
}
