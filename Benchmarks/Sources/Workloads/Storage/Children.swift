import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Creates, uses and saves children while the parent has more and more unsaved changes. The cost per child must not grow.
public struct Children: Sendable {
    private let sizes: [Int]
    private let seed: UInt64

    /// - Parameter objects: The largest number of unsaved changes in the parent.
    public init(objects: Int, seed: UInt64) {
        sizes = [0, objects / 1000, objects / 10, objects].reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        self.seed = seed
    }

    private static let children = 2_000

    /// Returns one row per operation and size of the parent, in nanoseconds per child.
    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var rows: [Report.Row] = []
        var costs: [StoreKind: [Int: [ChildCosts]]] = [:]
        for _ in 0..<repeats {
            for store in stores {
                for size in sizes {
                    progress.step("children: \(store.rawValue), \(size) unsaved changes")
                    costs[store, default: [:]][size, default: []].append(try await run(store, size))
                }
            }
        }
        for store in stores {
            for size in sizes {
                guard let found = costs[store]?[size] else { continue }
                rows.append(row("make and drop a child", store: store, size: size, costs: found.map(\.makeAndDrop)))
                rows.append(
                    row(
                        "make, insert one, read one, save to parent", store: store, size: size, costs: found.map(\.makeUseAndSave)
                    ))
            }
        }
        return rows
    }

    private func row(_ operation: String, store: StoreKind, size: Int, costs: [Double]) -> Report.Row {
        var row = Report.Row(benchmark: "children", durability: "none", objects: size, verified: true)
        row.operation = "\(operation), parent with \(size)"
        row.engine = Engine.allCases.first { $0.store == store }?.rawValue
        row.store = store.rawValue
        row.nanosecondsPerObject = Spread(costs)
        return row
    }

    private struct ChildCosts: Sendable {
        var makeAndDrop: Double
        var makeUseAndSave: Double
    }

    private func run(_ store: StoreKind, _ size: Int) async throws -> ChildCosts {
        let folder = try RunFolder()
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let parent = await container.newBackgroundContext(name: "parent")
        let values = RecordData.make(1, seed: seed).tables[0].attributes.map { $0.values[0] }
        let entity = model.entities[0]
        let first = await parent.perform { context -> ObjectID? in
            var first: ObjectID?
            for _ in 0..<size {
                let object = context.insert(entity, values: values)
                if first == nil { first = object.objectID }
            }
            return first
        }
        let makeAndDrop = await parent.perform { context in
            // The first child seals the parent's layer. All later children find it sealed.
            _ = context.newBackgroundChild(name: "child")
            let start = Clock.now()
            for _ in 0..<Self.children { _ = context.newBackgroundChild(name: "child") }
            return Double(Clock.now() - start) / Double(Self.children)
        }
        let count = 200
        let start = Clock.now()
        for _ in 0..<count {
            let child = await parent.perform { $0.newBackgroundChild(name: "child") }
            let kind = await child.perform { context -> Value in
                let own = context.insert(entity, values: values)
                return (first.map { context.object(with: $0) } ?? own)[attribute: entity.attributes[1]]
            }
            guard kind == values[1] else { throw VerificationError("children: a child read \(kind), expected \(values[1])") }
            try await child.save()
        }
        let makeUseAndSave = Double(Clock.now() - start) / Double(count)
        let held = await parent.perform { context in
            let objects = context.insertedObjects
            let right = objects.count { object in zip(entity.attributes, values).allSatisfy { object[attribute: $0] == $1 } }
            return (count: objects.count, right: right)
        }
        guard held.count == size + count, held.right == held.count else {
            throw VerificationError(
                "children: the parent holds \(held.count) objects, \(held.right) with their values, expected \(size + count)")
        }
        return ChildCosts(makeAndDrop: makeAndDrop, makeUseAndSave: makeUseAndSave)
    }
}
