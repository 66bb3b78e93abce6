// What a program that imports Strata sees: objects and contexts, the store on LMDB, the store in memory.
@_exported import LMDBStore
@_exported import MemoryStore
@_exported import ObjectGraph
@_exported import StoreInterface
