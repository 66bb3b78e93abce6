// The names that `import Strata` makes visible: objects and contexts, the stores on LMDB and in memory, and the types of
// values, schemas and stores that programs meet. Authors of stores import `StoreInterface`. `ObjectGraph` is exported whole,
// because the compiler finds its operators, such as `==` of models, in no other way.
@_exported import ObjectGraph
@_exported import class LMDBStore.LMDBStore
@_exported import class MemoryStore.MemoryStore
@_exported import class StoreFiles.LargeDataWriter
@_exported import enum StoreInterface.DeferralStyle
@_exported import enum StoreInterface.Durability
@_exported import protocol StoreInterface.ObjectStore
@_exported import struct StoreInterface.StoreCapabilities
@_exported import struct StoreInterface.StoreDescription
@_exported import struct StoreModel.CacheUse
@_exported import class StoreModel.Cancellation
@_exported import struct StoreModel.ChangeSet
@_exported import enum StoreModel.ColumnType
@_exported import struct StoreModel.CompactionOptions
@_exported import struct StoreModel.CompactionProgress
@_exported import struct StoreModel.EntitySchema
@_exported import enum StoreModel.ExistingFile
@_exported import typealias StoreModel.Generation
@_exported import enum StoreModel.HistoryCut
@_exported import struct StoreModel.MigrationProgress
@_exported import struct StoreModel.ObjectAddress
@_exported import typealias StoreModel.ObjectKey
@_exported import struct StoreModel.Retention
@_exported import enum StoreModel.Routing
@_exported import struct StoreModel.SaveOrigin
@_exported import struct StoreModel.SchemaLoss
@_exported import struct StoreModel.SchemaVersion
@_exported import struct StoreModel.StoreError
@_exported import struct StoreModel.StoreIdentity
@_exported import struct StoreModel.StoreLineage
@_exported import struct StoreModel.StoreSchema
@_exported import struct StoreModel.TableSize
@_exported import struct StoreModel.Tombstone
@_exported import enum StoreModel.Value
@_exported import protocol StoreModel.ValueParts
@_exported import struct StoreModel.VerificationFinding
