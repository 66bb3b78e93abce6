import StoreInterface
import StoreModel

// Names of development versions, so that programs written for them still compile.

extension ManagedObjectContext {
    /// The former name of ``read(from:)``.
    @available(*, deprecated, renamed: "read(from:)")
    public func pin(to snapshot: Snapshot) { read(from: snapshot) }
}

extension ChangeSet {
    /// The former name of `metadata`.
    @available(*, deprecated, renamed: "metadata")
    public var origin: SaveMetadata { metadata }
}

extension DeferredSaveFailure {
    /// The former name of `metadata`.
    @available(*, deprecated, renamed: "metadata")
    public var origin: SaveMetadata { metadata }
}

/// The former name of `SaveMetadata`.
@available(*, deprecated, renamed: "SaveMetadata")
public typealias SaveOrigin = SaveMetadata
