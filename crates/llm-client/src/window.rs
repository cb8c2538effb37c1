//! Which of several windows of a model counts (requirement R07, field case FB-020).

use std::fmt;

use foldline_session_model::Tokens;

/// What different sides say about the window of one model; `None` where they say nothing. A window of 0 is
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSources {
    /// The user, for this model.
    pub user: Option<Tokens>,
    /// The configuration of the provider.
    pub config: Option<Tokens>,
    /// The server: its list of models, or the limit in an overflow that it reported.
    pub server: Option<Tokens>,
    /// The catalogue.
    pub catalogue: Option<Tokens>,
}

/// The window that counts, and who says so; both belong into diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveWindow {
    /// The window.
    pub tokens: Tokens,
    /// Who says so.
    pub source: WindowSource,
}

/// Who knows the window of a model, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WindowSource {
    /// The user.
    User,
    /// The configuration of the provider.
    Config,
    /// The server.
    Server,
    /// The catalogue.
    Catalogue,
}

impl WindowSources {
    /// The window of the strongest side that knows one; `None` when it is unknown, and then no threshold is
    /// ever reached.
    pub fn effective(&self) -> Option<EffectiveWindow> {
        [
            (self.user, WindowSource::User),
            (self.config, WindowSource::Config),
            (self.server, WindowSource::Server),
            (self.catalogue, WindowSource::Catalogue),
        ]
        .into_iter()
        .find_map(|(tokens, source)| {
            let tokens = tokens.filter(|tokens| *tokens > Tokens::ZERO)?;
            Some(EffectiveWindow { tokens, source })
        })
    }
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Config => "config",
            Self::Server => "server",
            Self::Catalogue => "catalogue",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fb_020_the_strongest_side_that_knows_wins() {
        for (user, config, server, catalogue, expected) in [
            (5, 4, 3, 2, Some((5, WindowSource::User))),
            (0, 4, 3, 2, Some((4, WindowSource::Config))),
            (0, 0, 3, 2, Some((3, WindowSource::Server))),
            (0, 0, 0, 2, Some((2, WindowSource::Catalogue))),
            (0, 0, 0, 0, None),
        ] {
            // An unknown window and one of 0 are the same.
            for hide in [false, true] {
                let known = |tokens: u64| Some(Tokens(tokens)).filter(|_| !(hide && tokens == 0));
                let sources = WindowSources {
                    user: known(user),
                    config: known(config),
                    server: known(server),
                    catalogue: known(catalogue),
                };
                let effective = sources
                    .effective()
                    .map(|window| (window.tokens.get(), window.source));
                assert_eq!(effective, expected, "{sources:?}");
            }
        }
    }
}
