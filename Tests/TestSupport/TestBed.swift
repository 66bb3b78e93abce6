import CoreDataRouting
import Foundation
import LMDBStore
import MemoryStore
import ObjectGraph
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel

/// A store under test.
public enum StoreKind: String, Sendable, CaseIterable, CustomStringConvertible {
    case memory, lmdb, sqlite

    public var description: String { rawValue }
}

/// A combination of store and stack.
public struct Combination: Sendable, CustomStringConvertible {
    public var store: StoreKind
    public var stack: ContextStack

    public var description: String { "\(store)-\(stack.rawValue)" }

    public static let all: [Combination] = StoreKind.allCases.flatMap { store in
        ContextStack.allCases.map { Combination(store: store, stack: $0) }
    }

    /// The combinations whose background contexts are roots.
    public static let rooted = all.filter { $0.stack == .siblings || $0.stack == .split }

    /// The combinations whose background contexts are children of main.
    public static let parented = all.filter { $0.stack != .siblings && $0.stack != .split }
}

/// A folder for the files of one test, and a store in it. The folder is removed with the value.
public final class TestBed: Sendable {
    public let folder: URL
    public let kind: StoreKind
    private let memoryName: String
    private let valueBytesOfTransaction: Int
    private let temporary: TemporaryFolder?

    /// - Parameter valueBytesOfTransaction: The bytes of large values that the LMDB store writes in one transaction.
    public init(_ kind: StoreKind, valueBytesOfTransaction: Int = 1 << 24) throws {
        self.kind = kind
        self.valueBytesOfTransaction = valueBytesOfTransaction
        memoryName = UUID().uuidString
        let temporary = try TemporaryFolder()
        self.temporary = temporary
        folder = temporary.url
    }

    /// Opens the store in the folder of another process's test bed. That process removes the folder.
    public init(_ kind: StoreKind, in folder: URL) {
        self.kind = kind
        self.folder = folder
        valueBytesOfTransaction = 1 << 24
        memoryName = UUID().uuidString
        temporary = nil
    }

    public var description: StoreDescription { description(.snapshot) }

    /// The store, for contexts that read in a given way.
    private func description(_ routing: Routing) -> StoreDescription {
        switch kind {
        case .memory: .memory(name: memoryName)
        case .lmdb: .lmdb(file, options: options)
        case .sqlite: .sqlite(file, routing: routing)
        }
    }

    /// Hundreds of stores are open at once in the tests. A terabyte of address space for each would not fit.
    private var options: LMDBStore.Options {
        var options = LMDBStore.Options()
        options.mapSize = 1 << 32
        options.valueBytesOfTransaction = valueBytesOfTransaction
        // A process that gets no processor for long is not a busy store.
        options.busyTimeout = .seconds(600)
        return options
    }

    public var file: URL { folder.appendingPathComponent("store.\(kind.rawValue)") }

    /// Waits until the file is closed in this process. A writer closes it on a queue of its own.
    public func closed() async throws {
        try await until("the store's file is closed") {
            guard let file = description.migration else { return true }
            guard let copy = try? file.makeCopy() else { return false }
            copy.discard()
            return true
        }
    }

    public func container(_ stack: ContextStack = .siblings, model: Model = Music.model) async throws -> PersistentContainer {
        try await PersistentContainer(model: model, store: description, stack: stack)
    }

    /// Opens the store with contexts that read in a given way.
    public func container(
        _ stack: ContextStack = .siblings, model: Model = Music.model, routing: Routing, hops: RequestHops = RequestHops()
    ) async throws -> PersistentContainer {
        try await PersistentContainer(model: model, store: description(routing), stack: stack, routing: routing, hops: hops)
    }
}

extension PersistentContainer {
    /// Saves the main context through to the store. Callable from any test.
    @MainActor public func saveMain(_ durability: Durability = .durable) async throws {
        try await mainContext.save(through: .store, durability)
    }
}
