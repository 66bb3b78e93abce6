import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// Rules that do not fit their property, or that nothing can follow, are refused when the model is created (S061).
@Suite struct RuleErrorTests {
    private static func attribute(_ type: ColumnType, _ rule: PropertyRule) -> PropertyDescription {
        .attribute(AttributeDescription(name: "a", type: type, isOptional: true, rules: [rule]))
    }

    private static func relationship(_ cardinality: Cardinality, _ rule: PropertyRule) -> PropertyDescription {
        .relationship(RelationshipDescription(name: "a", destination: "E", cardinality: cardinality, rules: [rule]))
    }

    private static let unfit: [PropertyDescription] = [
        attribute(.int64, .length(1...)), attribute(.date, .length(1...)), attribute(.bool, .length(1...)),
        attribute(.uuid, .length(1...)), attribute(.string, .range(0...5)), attribute(.data, .range(0...5)),
        attribute(.bool, .range(0...1)), attribute(.date, .range(0...5)), attribute(.double, .range(Date.distantPast...)),
        attribute(.string, .range("a"..."b")), attribute(.int64, .range(Decimal(1)...)), attribute(.data, .pattern("a")),
        attribute(.int64, .pattern("a")), attribute(.string, .count(1...)), relationship(.toOne, .count(1...)),
        relationship(.toMany, .required), relationship(.toMany, .length(1...)), relationship(.toOne, .pattern("a")),
    ]

    private static let impossible: [PropertyDescription] = [
        attribute(.string, .length(3..<3)), attribute(.string, .length(-1...2)), attribute(.string, .length(..<0)),
        attribute(.data, .length(...(-1))), attribute(.int64, .range(5..<5)), attribute(.float, .range(0.1..<0.1)),
        attribute(.string, .pattern("[a-")), attribute(.string, .pattern("(")), relationship(.toMany, .count((-1)...)),
        relationship(.toMany, .count(2..<2)),
    ]

    private static let fitting: [PropertyDescription] = [
        attribute(.string, .length(0...0)), attribute(.data, .length(...3)), attribute(.uint64, .range(0.5...)),
        attribute(.double, .range(1...1)), attribute(.data, .range(Decimal(1)...)),
        attribute(.date, .range(...Date.distantFuture)),
        attribute(.uuid, .required), attribute(.string, .pattern("")), relationship(.toOne, .required),
        relationship(.toMany, .count(..<5)), relationship(.toMany, .count(Int.max...)),
    ]

    private static func error(_ property: PropertyDescription) -> ModelError? {
        do throws(ModelError) { _ = try Model([EntityDescription(name: "E", properties: [property])]) } catch { return error }
        return nil
    }

    @Test func `S061: a rule that does not fit its property is an error of the model`() throws {
        for (properties, reason) in [(Self.unfit, ModelError.Reason.ruleDoesNotFit), (Self.impossible, .wrongRule)] {
            for property in properties {
                let error = Self.error(property)
                #expect(error?.reason == reason, "\(property)")
                #expect(error?.entity == "E" && error?.property == "a")
                #expect(error?.description.contains("\n") == false && error?.description.hasPrefix("E.a: a rule") == true)
            }
        }
    }

    @Test(arguments: fitting.indices) func `S061: a rule that fits its property is none`(_ index: Int) {
        #expect(Self.error(Self.fitting[index]) == nil)
    }
}
