//! Object stores in layers. A layer holds a store in its field `inner` and changes some of the store's methods.

/// Writes methods of [`ObjectStore`](object_store::ObjectStore) that pass a call on to the layer's inner store. The layer lists their names.
/// A method that is neither listed nor written has the trait's default, which calls other methods of the layer. `put_opts` can't be listed,
/// because every layer changes it.
///
/// The signatures are those that `async_trait` makes of the trait's methods, because the attribute does not look into macros. Lifetimes must
/// have the same number and order as in the trait. The future of the inner store is returned without another box around it.
macro_rules! delegate_to_inner {
    ($($method:ident),+ $(,)?) => {
        $($crate::object_store_layers::delegate_to_inner! { @method $method })+
    };
    (@method put_multipart_opts) => {
        fn put_multipart_opts<'store, 'path, 'future>(
            &'store self,
            location: &'path ::object_store::path::Path,
            opts: ::object_store::PutMultipartOptions,
        ) -> ::futures::future::BoxFuture<
            'future,
            ::object_store::Result<Box<dyn ::object_store::MultipartUpload>>,
        >
        where
            'store: 'future,
            'path: 'future,
            Self: 'future,
        {
            self.inner.put_multipart_opts(location, opts)
        }
    };
    (@method get_opts) => {
        fn get_opts<'store, 'path, 'future>(
            &'store self,
            location: &'path ::object_store::path::Path,
            options: ::object_store::GetOptions,
        ) -> ::futures::future::BoxFuture<'future, ::object_store::Result<::object_store::GetResult>>
        where
            'store: 'future,
            'path: 'future,
            Self: 'future,
        {
            self.inner.get_opts(location, options)
        }
    };
    (@method get_ranges) => {
        fn get_ranges<'store, 'path, 'ranges, 'future>(
            &'store self,
            location: &'path ::object_store::path::Path,
            ranges: &'ranges [::std::ops::Range<u64>],
        ) -> ::futures::future::BoxFuture<'future, ::object_store::Result<Vec<::bytes::Bytes>>>
        where
            'store: 'future,
            'path: 'future,
            'ranges: 'future,
            Self: 'future,
        {
            self.inner.get_ranges(location, ranges)
        }
    };
    (@method delete_stream) => {
        fn delete_stream(
            &self,
            locations: ::futures::stream::BoxStream<
                'static,
                ::object_store::Result<::object_store::path::Path>,
            >,
        ) -> ::futures::stream::BoxStream<'static, ::object_store::Result<::object_store::path::Path>> {
            self.inner.delete_stream(locations)
        }
    };
    (@method list) => {
        fn list(
            &self,
            prefix: Option<&::object_store::path::Path>,
        ) -> ::futures::stream::BoxStream<'static, ::object_store::Result<::object_store::ObjectMeta>> {
            self.inner.list(prefix)
        }
    };
    (@method list_with_offset) => {
        fn list_with_offset(
            &self,
            prefix: Option<&::object_store::path::Path>,
            offset: &::object_store::path::Path,
        ) -> ::futures::stream::BoxStream<'static, ::object_store::Result<::object_store::ObjectMeta>> {
            self.inner.list_with_offset(prefix, offset)
        }
    };
    (@method list_with_delimiter) => {
        fn list_with_delimiter<'store, 'path, 'future>(
            &'store self,
            prefix: Option<&'path ::object_store::path::Path>,
        ) -> ::futures::future::BoxFuture<'future, ::object_store::Result<::object_store::ListResult>>
        where
            'store: 'future,
            'path: 'future,
            Self: 'future,
        {
            self.inner.list_with_delimiter(prefix)
        }
    };
    (@method copy_opts) => {
        fn copy_opts<'store, 'from, 'to, 'future>(
            &'store self,
            from: &'from ::object_store::path::Path,
            to: &'to ::object_store::path::Path,
            options: ::object_store::CopyOptions,
        ) -> ::futures::future::BoxFuture<'future, ::object_store::Result<()>>
        where
            'store: 'future,
            'from: 'future,
            'to: 'future,
            Self: 'future,
        {
            self.inner.copy_opts(from, to, options)
        }
    };
    (@method rename_opts) => {
        fn rename_opts<'store, 'from, 'to, 'future>(
            &'store self,
            from: &'from ::object_store::path::Path,
            to: &'to ::object_store::path::Path,
            options: ::object_store::RenameOptions,
        ) -> ::futures::future::BoxFuture<'future, ::object_store::Result<()>>
        where
            'store: 'future,
            'from: 'future,
            'to: 'future,
            Self: 'future,
        {
            self.inner.rename_opts(from, to, options)
        }
    };
}

pub(crate) use delegate_to_inner;
