//! Connects to the object store that a URL names, with settings and credentials from the environment.

use std::path::Path as FilePath;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hashbrown::HashMap;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use parking_lot::Mutex;
use url::Url;

use super::aws;
use crate::bucket::metered_object_store::{MeteredObjectStore, Requests};
use crate::disk::checksummed_objects::ManifestChecksums;
use crate::error::{StoreError, chain};

/// Name of the object that marks a bucket as a store.
pub(crate) const FORMAT_NAME: &str = "FORMAT";

/// Timeout of one request. The caller retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Retries within the client. SlateDB retries above these, without limit.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// In-memory stores by name, for the life of the process.
static IN_MEMORY: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> = LazyLock::new(Mutex::default);

/// Registers an object store, such as one that fails, as `memory://name`. For tests and measurements.
#[doc(hidden)]
pub fn set_memory_store(name: &str, store: Arc<dyn ObjectStore>) {
    IN_MEMORY.lock().insert(name.to_owned(), store);
}

/// A location in an object store.
pub(crate) struct Bucket {
    pub url: Url,
    /// Name of the setting that configures this location, for error messages.
    pub setting: &'static str,
    /// The object store. Paths are relative to the URL's prefix.
    pub store: Arc<dyn ObjectStore>,
    /// A client with its own connections for node leases, which must not queue behind other requests.
    pub urgent: Arc<dyn ObjectStore>,
    pub requests: Arc<Requests>,
    pub checksums: Arc<ManifestChecksums>,
}

impl Bucket {
    /// Creates a client for the data of a store. No request is sent yet.
    pub fn connect(url: &Url) -> Result<Bucket, StoreError> {
        Bucket::connect_as("store", url, None, Arc::default())
    }

    /// Creates a client for the bucket of another setting, with an optional endpoint. Its requests are counted in `requests`.
    pub fn connect_as(
        setting: &'static str,
        url: &Url,
        endpoint: Option<&str>,
        requests: Arc<Requests>,
    ) -> Result<Bucket, StoreError> {
        let client = |retries| client_of(setting, url, endpoint, retries);
        let (store, once) = (client(RETRIES)?, client(0)?);
        let checksums = Arc::<ManifestChecksums>::default();
        let metered = |store, once| {
            Arc::new(MeteredObjectStore::new(
                store,
                once,
                requests.clone(),
                checksums.clone(),
            ))
        };
        Ok(Bucket {
            url: url.clone(),
            setting,
            store: metered(store, once),
            urgent: metered(client(RETRIES)?, client(0)?),
            requests,
            checksums,
        })
    }

    /// Returns a client for a local folder that holds the log.
    pub fn folder(path: &FilePath, fsync: bool, requests: Arc<Requests>) -> Result<Bucket, StoreError> {
        let failed = |error: std::io::Error| StoreError::io("cannot create", path, &error);
        let root = std::path::absolute(path).map_err(failed)?;
        std::fs::create_dir_all(&root).map_err(failed)?;
        let refused =
            |why: String| StoreError::InvalidConfig(format!("log_store = \"{}\": {why}", root.display()));
        let url = Url::from_file_path(&root).map_err(|()| refused("not a path".to_owned()))?;
        let files = LocalFileSystem::new_with_prefix(&root).map_err(|error| refused(chain(&error)))?;
        let files: Arc<dyn ObjectStore> = Arc::new(files.with_fsync(fsync));
        let checksums = Arc::<ManifestChecksums>::default();
        let store = Arc::new(MeteredObjectStore::new(
            files.clone(),
            files,
            requests.clone(),
            checksums.clone(),
        ));
        Ok(Bucket {
            url,
            setting: "log_store",
            urgent: store.clone(),
            store,
            requests,
            checksums,
        })
    }
}

/// Creates a client for the location that `setting` names. Its requests are not counted, and objects are returned as stored. No request is
/// sent yet. Endpoint and credentials come from the environment.
///
/// # Errors
/// The URL or the environment is invalid.
pub fn plain_client(setting: &str, url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    client_of(setting, url, None, RETRIES)
}

fn client_of(
    setting: &str,
    url: &Url,
    endpoint: Option<&str>,
    retries: usize,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let bad = |why: String| StoreError::InvalidConfig(format!("{setting} = \"{url}\": {why}"));
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad(
            "what follows ? or # is not understood; endpoint, region and credentials come from the environment".into(),
        ));
    }
    let prefix = Path::from_url_path(url.path()).map_err(|error| bad(error.to_string()))?;
    let root = match url.scheme() {
        "memory" => Ok(memory(url)),
        "gs" => google(url, retries),
        "az" | "azure" | "abfs" | "abfss" => azure(url, retries),
        _ => s3(url, endpoint, retries),
    };
    let root = root.map_err(|error| bad(chain(&error)))?;
    Ok(match prefix.as_ref().is_empty() {
        true => root,
        false => Arc::new(PrefixStore::new(root, prefix)),
    })
}

fn client() -> ClientOptions {
    // The HTTP client needs an installed crypto provider. An error means that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_pool_idle_timeout(Duration::from_secs(30))
}

fn retry_config(max_retries: usize) -> RetryConfig {
    RetryConfig {
        max_retries,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    }
}

fn memory(url: &Url) -> Arc<dyn ObjectStore> {
    let name = url.host_str().unwrap_or_default().to_owned();
    let mut stores = IN_MEMORY.lock();
    let store = stores.entry(name).or_insert_with(|| Arc::new(InMemory::new()));
    store.clone()
}

/// Creates a client for S3. `s3express://` is S3's other kind of bucket, which is served in one zone.
fn s3(url: &Url, endpoint: Option<&str>, retries: usize) -> object_store::Result<Arc<dyn ObjectStore>> {
    let express = url.scheme() == "s3express";
    let profile = aws::Profile::load();
    let mut client = client();
    let mut builder = AmazonS3Builder::from_env();
    let from_env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let usual = || {
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .into_iter()
            .find_map(from_env)
            .or_else(|| profile.get("endpoint_url"))
    };
    let endpoint = match endpoint {
        Some(endpoint) => Some(endpoint.to_owned()),
        // The endpoint of an S3 Express bucket is derived from the bucket's name.
        None if express => None,
        None => usual(),
    };
    if let Some(endpoint) = endpoint {
        // An http:// endpoint was configured explicitly, so unencrypted requests are allowed.
        client = client.with_allow_http(endpoint.starts_with("http://"));
        builder = builder.with_endpoint(endpoint);
    }
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
        .into_iter()
        .find_map(from_env)
        .or_else(|| profile.get("region"));
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    let elsewhere = ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"];
    if elsewhere.into_iter().find_map(from_env).is_none()
        && let Some(provider) = profile.credentials()
    {
        builder = builder.with_credentials(provider);
    }
    let store = builder
        .with_url(url.as_str().replacen("s3express:", "s3:", 1))
        .with_s3_express(express)
        .with_client_options(client)
        .with_retry(retry_config(retries))
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .build()?;
    Ok(Arc::new(store))
}

fn google(url: &Url, retries: usize) -> object_store::Result<Arc<dyn ObjectStore>> {
    let store = GoogleCloudStorageBuilder::from_env()
        .with_url(url.as_str())
        .with_client_options(client())
        .with_retry(retry_config(retries))
        .build()?;
    Ok(Arc::new(store))
}

fn azure(url: &Url, retries: usize) -> object_store::Result<Arc<dyn ObjectStore>> {
    let plain = std::env::var("AZURE_STORAGE_ENDPOINT").is_ok_and(|endpoint| endpoint.starts_with("http://"));
    let store = MicrosoftAzureBuilder::from_env()
        .with_url(url.as_str())
        .with_client_options(client().with_allow_http(plain))
        .with_retry(retry_config(retries))
        .build()?;
    Ok(Arc::new(store))
}
