//! The configuration. Flags override the environment, which overrides the file, which overrides defaults.

mod added;
mod amount;
mod audit;
mod caller;
mod caller_table;
mod cluster;
mod compaction;
mod context_window;
mod environment;
mod fallback;
mod file;
mod filter;
mod key;
mod known_vendor;
mod logins;
mod mcp;
mod memory;
mod models;
mod one_or_more;
mod part;
mod passing;
mod permission;
mod place;
mod postgres;
mod price;
mod private_file;
mod provider;
mod report;
mod retention;
mod retry;
mod route;
mod secret;
mod table;
mod terms;
mod titles;
mod tls;
mod written;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, bail};
use everturn_kernel::{AfterContent, Settings};
use everturn_mcp::{LoginStore, ServerConfig};
use everturn_orchestrator::MemoryLimits;
use everturn_transport_http::KnownCaller;
use everturn_wire::{FallbackChains, RequiredReport};

pub(crate) use added::{Added, AddedFile};
pub(crate) use audit::AuditFile;
pub(crate) use caller::{CallersFile, KeptCaller, USUAL_SCOPES, until};
pub(crate) use caller_table::ScopeName;
pub(crate) use cluster::Cluster;
pub(crate) use compaction::Compaction;
pub(crate) use environment::Environment;
pub(crate) use everturn_terminal::Hidden;
pub(crate) use everturn_wire::AuditEntry as Entry;
pub(crate) use known_vendor::{KNOWN_VENDORS, KnownVendor, Wanted, known_vendor};
pub(crate) use logins::LoginFile;
pub(crate) use part::Callers;
pub(crate) use passing::Passing;
pub(crate) use permission::Permissions;
pub(crate) use postgres::Postgres;
pub(crate) use provider::{Api, Provider};
pub(crate) use report::required as required_report;
pub(crate) use retention::Keep;
pub(crate) use retry::Retry;
pub(crate) use route::Route;
pub(crate) use terms::{Amount, Limit, TermsTable};
pub(crate) use titles::Titles;
pub(crate) use tls::TlsFiles;

use file::{AgentTable, File};
use models::{askable, check_names, known, providers, targets};
use place::{DEFAULT_LISTEN, data, given_listen, parse_listen, private_place};

/// Default maximum number of steps, so that a model that calls tools for ever is stopped.
const DEFAULT_MAX_STEPS: u32 = 200;

/// The configuration flags of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) data: Option<PathBuf>,
    /// Keep conversations in memory only.
    pub(crate) memory: bool,
    /// Ignore providers that were added, and keep none: nothing is to be on the disk.
    pub(crate) forgets: bool,
    /// The NATS servers of a cluster, separated by commas.
    pub(crate) cluster: Option<String>,
    /// The URL of the Postgres database.
    pub(crate) postgres: Option<String>,
}

/// The validated configuration.
#[derive(Debug)]
pub(crate) struct Config {
    /// The configuration file that was read.
    pub(crate) file: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    /// The file that conversations are kept in; `None` = in memory.
    pub(crate) data: Option<PathBuf>,
    /// The cluster that keeps conversations instead.
    pub(crate) cluster: Option<Cluster>,
    /// The Postgres database that keeps conversations instead.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "this build refuses to use one"))]
    pub(crate) postgres: Option<Postgres>,
    pub(crate) token: Option<Hidden>,
    /// Callers of the file.
    pub(crate) callers: Vec<KnownCaller>,
    /// The file of callers that were made with `everturn token`; `None` in a cluster, or as nothing is kept.
    pub(crate) callers_file: Option<CallersFile>,
    /// The audit log; `None` = there is none, as nothing is kept.
    pub(crate) audit_file: Option<AuditFile>,
    /// The header in which a proxy names callers.
    pub(crate) caller_header: Option<String>,
    /// What tokens cost, by pattern of models.
    pub(crate) prices: Vec<(String, everturn_orchestrator::Price)>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    /// Of the file, else of the environment.
    pub(crate) providers: Vec<Provider>,
    /// Providers that were added, by people.
    pub(crate) added: Vec<Provider>,
    /// The names of all providers of the file and the environment, also of disabled ones.
    pub(crate) names: BTreeSet<String>,
    /// The server's certificate; `None` = no TLS.
    pub(crate) tls: Option<TlsFiles>,
    /// Where those are kept; `None` = in memory.
    pub(crate) added_file: Option<AddedFile>,
    /// Where logins at MCP servers are kept; `None` = in memory, or there are no such servers.
    pub(crate) login_file: Option<LoginFile>,
    /// Providers, keys and MCP servers that are disabled because a secret is missing, and the effect on routes: one
    /// line each.
    pub(crate) off: Vec<String>,
    /// What is probably not intended: one line each.
    pub(crate) warnings: Vec<String>,
    pub(crate) routes: Vec<Route>,
    pub(crate) mcp: Vec<ServerConfig>,
    /// The default model or route; `None` = the first model.
    pub(crate) default_model: Option<String>,
    /// Files with secrets: keys, and the configuration if it contains any.
    pub(crate) secret_files: Vec<PathBuf>,
    pub(crate) retry: Retry,
    pub(crate) fallback_chains: FallbackChains,
    pub(crate) keep: Keep,
    /// How long ephemeral conversations are kept after their last turn.
    pub(crate) keep_ephemeral: Duration,
    pub(crate) settings: Settings,
    /// Maximum number of steps of a turn without a required report, if its settings do not set one.
    pub(crate) usual_max_steps: Option<u32>,
    /// The report that every turn must end with.
    pub(crate) final_report: Option<RequiredReport>,
    /// Whether models are offered the dice tool; `None` = only the demo is.
    pub(crate) dice: Option<bool>,
    pub(crate) permissions: Permissions,
    /// How histories that exceed the model's context are compacted; `None` = not at all.
    pub(crate) compaction: Option<Compaction>,
    /// How conversations get titles; `None` = from their first message.
    pub(crate) titles: Option<Titles>,
    /// Limits on the memory that conversations take.
    pub(crate) memory: MemoryLimits,
    /// Whether traces have the content of messages, unless the environment says otherwise.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "this build exports none"))]
    pub(crate) traces_content: bool,
    pub(crate) system_prompt: Option<String>,
}

impl Config {
    /// Assembles and validates the configuration.
    pub(crate) fn resolve(flags: &Flags, environment: &Environment<'_>) -> Result<Self> {
        let path = Self::path(flags, environment);
        let file = Self::read(path.as_deref())?;
        Self::of(path, file, flags, environment)
    }

    /// Assembles a configuration that is not in a file. Nothing is read from the environment.
    pub(crate) fn of_text(text: &str) -> Result<Self> {
        let file = File::parse(Path::new("everturn with"), text.to_owned())?;
        Self::of(None, file, &Flags { memory: true, ..Flags::default() }, &Environment::empty())
    }

    fn of(path: Option<PathBuf>, file: File, flags: &Flags, environment: &Environment<'_>) -> Result<Self> {
        let (mut secret_files, of_file) = (secret_files(path.as_deref(), &file), file.data());
        let listen = given_listen(flags, environment).or(file.server.listen);
        let listen = listen.as_deref().map_or(Ok(DEFAULT_LISTEN), parse_listen)?;
        let token = flags.token.clone().or_else(|| environment.get("EVERTURN_TOKEN"));
        let token = token.as_deref().and_then(Hidden::new);
        let token = token.or_else(|| file.server.token.and_then(|token| Hidden::new(token.reveal())));
        let cluster = Cluster::resolve(flags, environment, file.cluster, &file.source)?;
        let postgres = Postgres::resolve(flags, environment, file.postgres, &file.source)?;
        let data = match (&cluster, &postgres) {
            (Some(_), Some(_)) => bail!(
                "conversations can be kept in NATS or in Postgres, but both are configured: remove one of [cluster] \
                 (EVERTURN_CLUSTER) and [postgres] (EVERTURN_POSTGRES)"
            ),
            (None, None) => data(flags, environment, of_file.clone())?,
            _ => None,
        };
        secret_files.extend(postgres.iter().filter_map(|postgres| postgres.secret_file.clone()));
        let tls = TlsFiles::resolve(file.server.tls_cert, file.server.tls_key, &file.source)?;
        secret_files.extend(tls.iter().map(|files| files.key.clone()));
        let retry = Retry::resolve(&file.retry)?;
        let mut settings = Settings {
            max_steps: file.max_steps.filter(|steps| *steps > 0),
            eager_tools: file.eager_tools.unwrap_or_default(),
            ..Settings::default()
        };
        settings.max_parallel_tools = file.max_parallel_tools.unwrap_or(settings.max_parallel_tools);
        settings.budget.max_wait_ms = Some(retry.max_wait_ms);
        if retry.rewinds {
            settings.after_content = AfterContent::Rewind;
        }
        let callers = caller::resolve(&file.caller, environment, &file.source)?;
        let place = private_place(flags, environment, of_file);
        let callers_file = place.as_deref().map(CallersFile::beside);
        // The servers of a cluster would each have their own.
        let (callers_file, unused) = match cluster {
            Some(_) => (None, callers_file.filter(|file| file.changed_at().is_some())),
            None => (callers_file, None),
        };
        let unused = unused.map(|file| caller::unused(&file, token.is_some() || !callers.is_empty()));
        let unused = unused.transpose()?;
        let audit_file = place.as_deref().map(AuditFile::beside);
        let added_file = place.as_deref().map(AddedFile::beside);
        let login_file = place.as_deref().map(LoginFile::beside);
        let entries = added_file.as_ref().map(AddedFile::read).transpose()?.unwrap_or_default();
        secret_files
            .extend(added_file.iter().filter(|_| !entries.is_empty()).map(|file| file.path().to_owned()));
        let (providers, mut off) =
            providers(&file.providers, environment, &file.source, !entries.is_empty())?;
        check_names(&providers)?;
        let taken: Vec<&str> = file.providers.iter().map(|table| table.name.as_str()).collect();
        let (added, lacking) = provider::added(&entries, |name| {
            taken.contains(&name) || providers.iter().any(|provider| provider.name == name)
        });
        off.extend(lacking);
        let is_demo = providers.is_empty() && added.is_empty();
        let permissions = Permissions::resolve(&file.tools, is_demo)?;
        let own_names: Vec<String> = providers.iter().map(|provider| provider.name.clone()).collect();
        let known = known(providers.iter().chain(&added), &file.providers);
        let (routes, lacking) = route::resolve(&file.routes, &retry.policy, &known, &file.source)?;
        off.extend(lacking);
        let names = fallback::Names {
            models: &known,
            routes: &routes,
            all_routes: file.routes.iter().map(|route| route.name.get_ref().as_str()).collect(),
        };
        let (fallback_chains, lacking) =
            fallback::resolve(&file.retry.fallback_chains, &names, &file.source)?;
        off.extend(lacking);
        let check = |name: &str, asked: &str| askable(name, asked, &known, &routes, &off);
        file.default_model.as_deref().map_or(Ok(()), |model| check("default_model", model))?;
        permissions.review.as_ref().map_or(Ok(()), |review| check("[tools.review] model", &review.model))?;
        let AgentTable { final_report, report_attempts } = &file.agent;
        let final_report =
            report::resolve(final_report.as_ref(), report_attempts.as_ref(), "under [agent]", &file.source)?;
        let compaction = Compaction::resolve(&file.compaction, &file.source, check)?;
        let titles = Titles::resolve(&file.titles, environment, &file.source, check)?;
        // Several servers would make the same calls, and demos in memory are to make none of their own.
        let titles = titles.filter(|_| cluster.is_none() && !flags.forgets);
        let memory = memory::resolve(&file.memory, &file.source)?;
        let is_of_environment = file.providers.is_empty();
        let assumed = Provider::assumed_models(environment).filter(|_| is_of_environment);
        let (mut mcp, lacking) = mcp::resolve(&file.mcp, environment, &file.source)?;
        off.extend(lacking);
        let login_file = login_file.filter(|_| !mcp.is_empty());
        secret_files
            .extend(login_file.iter().filter_map(|file| file.changed_at().map(|_| file.path().to_owned())));
        if let Some(file) = &login_file {
            let logins: Arc<dyn LoginStore> = Arc::new(file.clone());
            mcp.iter_mut().for_each(|server| server.logins = logins.clone());
        }
        Ok(Self {
            file: path,
            listen,
            data,
            cluster,
            postgres,
            token,
            callers,
            callers_file,
            audit_file,
            caller_header: file.server.caller_header,
            prices: price::resolve(&file.price, &file.source)?,
            allowed_hosts: file.server.allowed_hosts,
            allowed_origins: file.server.allowed_origins,
            // The demo shows a tool; a real model has only the configured ones.
            dice: file.tools.dice,
            permissions,
            compaction,
            titles,
            memory,
            traces_content: file.telemetry.message_content,
            providers,
            added,
            added_file,
            login_file,
            names: taken.into_iter().map(str::to_owned).chain(own_names).collect(),
            tls,
            off,
            warnings: assumed.into_iter().chain(unused).collect(),
            routes,
            mcp,
            default_model: file.default_model,
            secret_files,
            retry,
            fallback_chains,
            keep: Keep::resolve(&file.retention),
            keep_ephemeral: retention::ephemeral(&file.retention),
            settings,
            usual_max_steps: file.max_steps.is_none().then_some(DEFAULT_MAX_STEPS),
            final_report,
            system_prompt: file.system_prompt,
        })
    }

    /// Returns all callers, also revoked ones. One of the configuration file goes before one that was made with its name.
    pub(crate) fn known_callers(&self) -> Result<Vec<KnownCaller>> {
        let mut all = self.callers.clone();
        for kept in self.callers_file.iter().map(CallersFile::read).collect::<Result<Vec<_>>>()?.concat() {
            let known = kept.known()?;
            if !self.callers.iter().any(|caller| caller.name == known.name) {
                all.push(known);
            }
        }
        Ok(all)
    }

    fn read(path: Option<&Path>) -> Result<File> {
        Ok(path.map(File::read).transpose()?.unwrap_or_default())
    }

    /// Returns the path of the given configuration file, else of the default one if it exists.
    fn path(flags: &Flags, environment: &Environment<'_>) -> Option<PathBuf> {
        let named = flags.config.clone().or_else(|| environment.get("EVERTURN_CONFIG").map(PathBuf::from));
        named.or_else(|| environment.config_path().filter(|path| path.exists()))
    }

    /// Checks that the server may listen on its address.
    pub(crate) fn check_exposure(&self) -> Result<()> {
        if !self.listen.ip().is_loopback() && self.token.is_none() && self.known_callers()?.is_empty() {
            bail!(
                "refusing to listen on {}: other machines could use your models without a token; set one with \
                 EVERTURN_TOKEN or `token` under [server], make some with `everturn token new`, or listen on 127.0.0.1",
                self.listen
            );
        }
        Ok(())
    }
}

fn secret_files(path: Option<&Path>, file: &File) -> Vec<PathBuf> {
    let of_keys = file.providers.iter().filter_map(|table| table.api_key_file.as_ref());
    let of_keys = of_keys.flat_map(|paths| paths.0.iter().map(|path| file.source.path(path)));
    let has_secret = |table: &table::ProviderTable| table.api_key.is_some() || !table.headers.is_empty();
    let is_secret = file.server.token.is_some() || file.providers.iter().any(has_secret);
    let is_secret = is_secret || postgres::has_secret(&file.postgres);
    let is_secret = is_secret || mcp::has_secrets(&file.mcp);
    let of_servers = mcp::secret_files(&file.mcp, &file.source);
    path.filter(|_| is_secret).map(Path::to_owned).into_iter().chain(of_keys).chain(of_servers).collect()
}

#[cfg(test)]
mod tests;
