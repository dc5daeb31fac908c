//! Models: what a turn can be run with.

use std::sync::Arc;

use everturn_kernel::Provider;

use crate::Error;

/// How much of an unknown name is shown, in characters.
const SHOWN: usize = 128;

/// A model that turns can be run with.
#[derive(Clone)]
pub(crate) struct Model {
    /// `credential/model`: how clients name it.
    pub(crate) id: String,
    /// How the provider names it.
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn Provider>,
}

/// All models; the first is the default.
#[derive(Clone, Default)]
pub(crate) struct Models(pub(crate) Vec<Model>);

impl Models {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.0.iter().map(|model| model.id.clone()).collect()
    }

    /// The model that was asked for; else the one used last, if it is still there; else the default.
    pub(crate) fn choose(&self, asked: Option<&str>, last: Option<&str>) -> Result<Model, Error> {
        let find = |id: &str| self.0.iter().find(|model| model.id == id);
        let chosen = match asked {
            Some(asked) => find(asked),
            None => last.and_then(find).or(self.0.first()),
        };
        let unknown = || Error::UnknownModel {
            model: asked.unwrap_or_default().chars().take(SHOWN).collect(),
            known: self.ids(),
        };
        chosen.cloned().ok_or_else(unknown)
    }
}
