import Datasets
import Figures
import ObjectGraph
import StoreInterface
import StoreModel
import Testing

@testable import Workloads

/// Inputs of unusual shape are measured, and pass the checks.
@Suite(.serialized) struct InputShapeTests {
    private static func name(_ values: [Value]) -> TableAttribute {
        TableAttribute(name: "name", type: .string, isOptional: false, values: values)
    }

    /// Cats and dogs, of which only cats have lives, and a keeper of each.
    private static var hierarchy: Dataset {
        var pet = Table(
            name: "Pet",
            attributes: [
                name([.string("a"), .string("b")]),
                TableAttribute(name: "lives", type: .int64, isOptional: false, values: [.int(9), .null]),
            ],
            references: [TableReference(name: "keeper", inverse: "pets", destination: 1, rows: [0, 0])], rowCount: 2)
        pet.attributes[1].owners = [1]
        (pet.isAbstract, pet.kinds) = (true, [1, 2])
        pet.subentities = [TableSubentity(name: "Cat", superentity: 0), TableSubentity(name: "Dog", superentity: 0)]
        let keeper = Table(name: "Keeper", attributes: [name([.string("k")])], rowCount: 1)
        return Dataset(name: "pets", tables: [pet, keeper]).withoutSubentities
    }

    private static var pairs: Dataset {
        let passport = TableReference(name: "passport", inverse: "person", destination: 1, rows: [0])
        let person = TableReference(name: "person", inverse: "passport", destination: 0, rows: [0])
        return Dataset(
            name: "pairs",
            tables: [
                Table(name: "Person", attributes: [name([.string("a")])], references: [passport], rowCount: 1),
                Table(name: "Passport", attributes: [name([.string("b")])], references: [person], rowCount: 1),
            ])
    }

    private static var minusZero: Dataset {
        let number = TableAttribute(name: "number", type: .double, isOptional: false, values: [.double(-0.0), .double(1.5)])
        return Dataset(name: "zero", tables: [Table(name: "Thing", attributes: [number], rowCount: 2)])
    }

    /// The largest table has nothing but a reference, and another one nothing at all.
    private static var bare: Dataset {
        let reference = TableReference(name: "a", inverse: "others", destination: 0, rows: [0, 0, 0])
        return Dataset(
            name: "bare",
            tables: [
                Table(name: "A", attributes: [name([.string("a")])], rowCount: 1),
                Table(name: "B", attributes: [], references: [reference], rowCount: 3),
                Table(name: "C", attributes: [], rowCount: 2),
            ])
    }

    /// Catches: a subentity's properties in rows of the head of its hierarchy, which stopped the program; a one-to-one relationship whose
    /// inverse is looked for among lists; minus zero, which SQLite does not store; a table without attributes, by which nothing is sorted.
    @Test(arguments: ["hierarchy", "pairs", "minusZero", "bare"], StoreKind.allCases)
    func `an input of unusual shape is measured`(_ shape: String, _ store: StoreKind) async throws {
        let data = Self.data(shape)
        let setting = BenchmarkConfiguration(stack: .siblings, store: store, routing: .snapshot)
        _ = try await Shootout(data, savePoints: .every(1), durability: .deferred).run(setting)
    }

    /// Catches: another engine that cannot store such an input, or whose check fails.
    @Test(arguments: ["hierarchy", "pairs", "minusZero", "bare"])
    func `every engine imports an input of unusual shape`(_ shape: String) async throws {
        let storage = Storage(imported: Self.data(shape), objects: 100, seed: 5, saveEvery: 50, durability: .deferred)
        let rows = try await storage.rows(Engine.allCases, repeats: 1, progress: ProgressBar(steps: 1, style: .silent))
        #expect(!rows.isEmpty && rows.allSatisfy(\.verified))
    }

    private static func data(_ shape: String) -> Dataset {
        switch shape {
        case "hierarchy": hierarchy
        case "pairs": pairs
        case "minusZero": minusZero
        default: bare
        }
    }
}
