/// The former name of a protocol for stores that can be copied while they are open.
@available(*, deprecated, renamed: "ObjectStore", message: "Ask whether capabilities contains .backup")
public typealias BackupableStore = ObjectStore

/// The former name of a protocol for stores that can be compacted.
@available(*, deprecated, renamed: "ObjectStore", message: "Ask whether capabilities contains .compaction")
public typealias CompactableStore = ObjectStore

/// The former name of a protocol for files that can be replaced by a backup.
@available(*, deprecated, renamed: "MigratableFile")
public typealias RestorableFile = MigratableFile
