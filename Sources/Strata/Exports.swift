// The modules that `import Strata` makes visible: objects and contexts, the store on LMDB, and the store in memory.
@_exported import LMDBStore
@_exported import MemoryStore
@_exported import ObjectGraph
@_exported import StoreInterface
@_exported import StoreModel
@_exported import class StoreFiles.LargeDataWriter
