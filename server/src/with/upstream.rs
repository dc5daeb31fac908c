//! Where a program's calls go.

/// A vendor's API, as its own clients call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Vendor {
    /// Returns the address of the vendor itself.
    fn host(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// Returns the version with which all paths begin.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Anthropic | Self::OpenAi => "/v1",
            Self::Gemini => "/v1beta",
        }
    }

    /// Returns the providers of the configuration that speak its APIs: name and kind.
    fn providers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("anthropic", "anthropic")],
            Self::OpenAi => &[("openai", "openai-responses"), ("openai-chat", "openai-chat")],
            Self::Gemini => &[("gemini", "gemini")],
        }
    }
}

/// An API that a program is going to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upstream {
    pub(super) vendor: Vendor,
    /// The base URL, version included.
    pub(super) base_url: String,
}

impl Upstream {
    /// Returns the vendor itself.
    pub(super) fn usual(vendor: Vendor) -> Self {
        Self { vendor, base_url: format!("{}{}", vendor.host(), vendor.version()) }
    }

    /// Returns what the value of a variable names. `suffix` is what the program expects after a server's address.
    pub(super) fn named(vendor: Vendor, value: &str, suffix: &str) -> Self {
        let value = value.trim_end_matches('/');
        let rest = if suffix == vendor.version() { "" } else { vendor.version() };
        // The version is given by some where a program adds it, and by none where it does not.
        let base_url = match value.ends_with(rest) {
            true => value.to_owned(),
            false => format!("{value}{rest}"),
        };
        Self { vendor, base_url }
    }
}

/// A provider that a program's user has added to its configuration.
#[derive(Debug)]
pub(super) struct OwnProvider {
    /// Its name there.
    pub(super) id: String,
    pub(super) base_url: String,
    /// The provider of our server that its calls go to. No model's name begins like this.
    pub(super) door: String,
}

/// Returns the configuration of a server that passes calls on to these, with the credentials that they come with.
pub(super) fn config(upstreams: &[Upstream], own: &[OwnProvider]) -> String {
    let of_vendors = upstreams.iter().flat_map(|Upstream { vendor, base_url }| {
        vendor.providers().iter().map(move |(name, kind)| (*name, *kind, base_url.as_str()))
    });
    // Their calls go to paths of their own, so they come last and their kind does not matter.
    let own = own.iter().map(|own| (&*own.door, "openai-chat", &*own.base_url));
    let table = |(name, kind, base_url): (&str, &str, &str)| {
        // A model on one's own machine reads a long prompt for minutes before its answer begins.
        let is_near = base_url.starts_with("http:");
        let patience = if is_near { "timeouts = { first_byte_ms = 600000 }\n" } else { "" };
        format!(
            "[[provider]]\nname = {name:?}\nkind = {kind:?}\nbase_url = {base_url:?}\ncredential = \"client\"\n\
             models = [\"any\"]\n{patience}"
        )
    };
    of_vendors.chain(own).map(table).collect()
}
