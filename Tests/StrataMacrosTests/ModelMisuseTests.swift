import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import StrataMacros

/// Mistakes in the use of `@Model` are reported at compile time.
@Suite struct ModelMisuseTests {
    /// Bodies of model classes, and the diagnostic of each.
    static let bodies: [(String, ModelDiagnostic)] = [
        ("let a: Int", .constant),
        ("lazy var a = 1", .lazy),
        ("weak var a: Other?", .reference),
        ("unowned var a: Other", .reference),
        ("var a = 1 { didSet {} }", .observers),
        ("@Clamped var a = 1", .wrapped),
        ("var a = 1, b = 2", .severalInOne),
        ("var (a, b) = (1, 2)", .pattern),
        ("var a = [1].count", .untyped),
        ("var id: Int", .reservedName),
        ("@Attribute(option) var a: Int", .unknownOption),
        ("@Attribute(.unique) @Relationship var a: Other?", .attributeOnRelationship),
        ("@Relationship var a: Other", .relationshipNotOptional),
        ("@Relationship var a: Set<Other>", .relationshipNotSupported),
        ("@Relationship var a: [Other?]", .relationshipNotSupported),
        ("@Relationship var a: [Other]?", .relationshipNotSupported),
        ("@Relationship var a = other()", .relationshipUntyped),
        ("@Relationship(inverse: path) var a: Other?", .wrongInverse),
        ("@Relationship(inverse: \\Third.all) var a: Other?", .wrongInverse),
        ("@Relationship(inverse: \\Other.first.second) var a: Other?", .wrongInverse),
        ("@Attribute(renamedFrom: \"a\") var a: Int", .formerName),
        ("@Attribute(renamedFrom: \"\") var a: Int", .formerName),
        ("@Attribute(renamedFrom: old) var a: Int", .formerName),
        ("@Attribute(renamedFrom: \"\\(old)\") var a: Int", .formerName),
        ("@Relationship(renamedFrom: \"a\") var a: Other?", .formerName),
        ("@Relationship(renamedFrom: nil) var a: [Other]", .formerName),
        ("@Attribute(renamedFrom: \"c\") var a: Int\n@Relationship(renamedFrom: \"c\") var b: Other?", .sameFormerName),
        ("@Transient var a: Int", .transientWithoutValue),
        ("@Transient let a: Int?", .transientWithoutValue),
        ("@Transient @Attribute var a = 1", .transientMixed),
        ("@Transient @Relationship var a: Other? = nil", .transientMixed),
    ]

    @Test(arguments: bodies.indices)
    func eachMisuseIsNamedOnce(_ index: Int) {
        let (body, misuse) = Self.bodies[index]
        #expect(MacroExpansion(of: "@Model final class A {\n\(body)\n}").messages == [misuse.message])
    }

    @Test func onlyFinalClassesThatAreNotGenericAreModels() {
        #expect(MacroExpansion(of: "@Model struct A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model enum A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model actor A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model class A {}").messages == [ModelDiagnostic.notFinal.message])
        #expect(MacroExpansion(of: "@Model final class A<B> {}").messages == [ModelDiagnostic.generic.message])
    }

    @Test func aModelWasCalledSomethingElseBefore() {
        #expect(
            MacroExpansion(of: "@Model(renamedFrom: \"A\") final class A {}").messages == [ModelDiagnostic.formerName.message])
        #expect(MacroExpansion(of: "@Model(renamedFrom: old) final class A {}").messages == [ModelDiagnostic.formerName.message])
        let renamed = MacroExpansion(
            of: "@Model(renamedFrom: \"B\") final class A {\n#Index<A>([\\.a, \\.b])\nvar a: Int\nvar b: Int\n}")
        #expect(renamed.messages == [])
        #expect(MacroExpansion.tokens(renamed.text).joined().contains("],renamedFrom:\"B\")"))
    }

    @Test func whatIsNotStoredIsLeftAlone() {
        let source = """
            @Model final class A {
                var stored = 1
                static let shared = 2
                static var count = 3
                var computed: Int { 4 }
                var both: Int { get { 5 } set { } }
                @Transient var kept = [1].count
                @Transient var maybe: Int?
                @Transient lazy var late = 6
                @Transient let constant = 7
                deinit {}
                struct Inner { let a: Int }
            }
            """
        let expansion = MacroExpansion(of: source)
        #expect(expansion.messages == [])
        #expect(expansion.text.components(of: "get(") == 1)
    }

    @Test func fixItsMakeTheModelRight() {
        expectExpansion(
            of: "@Model class A {}", "class A {}",
            diagnostics: [
                .init(
                    message: ModelDiagnostic.notFinal.message, line: 1, column: 8, fixIts: [.init(message: "insert 'final'")])
            ],
            fixIts: ["insert 'final'"], fixed: "@Model final class A {}")
        expectExpansion(
            of: "@Model\npublic class A {}", "public class A {}",
            diagnostics: [
                .init(
                    message: ModelDiagnostic.notFinal.message, line: 2, column: 8, fixIts: [.init(message: "insert 'final'")])
            ],
            fixIts: ["insert 'final'"], fixed: "@Model\npublic final class A {}")
        expectExpansion(
            of: "@Model final class A {\n    let a: Int\n}", "final class A {\n    let a: Int\n}",
            diagnostics: [
                .init(
                    message: ModelDiagnostic.constant.message, line: 2, column: 5,
                    fixIts: [.init(message: "replace 'let' with 'var'")])
            ],
            fixIts: ["replace 'let' with 'var'"], fixed: "@Model final class A {\n    var a: Int\n}")
    }

    @Test func fixItsMakeTheRelationshipRight() {
        expectExpansion(
            of: "@Model final class A {\n    @Relationship var b: B\n}", "final class A {\n    var b: B\n}",
            diagnostics: [
                .init(
                    message: ModelDiagnostic.relationshipNotOptional.message, line: 2, column: 26,
                    fixIts: [.init(message: "make it optional")])
            ],
            fixIts: ["make it optional"], fixed: "@Model final class A {\n    @Relationship var b: B?\n}")
        expectExpansion(
            of: "@Model final class A {\n    @Attribute(.unique) @Relationship var b: B?\n}",
            "final class A {\n    var b: B?\n}",
            diagnostics: [
                .init(
                    message: ModelDiagnostic.attributeOnRelationship.message, line: 2, column: 5,
                    fixIts: [.init(message: "remove '@Attribute'")])
            ],
            fixIts: ["remove '@Attribute'"], fixed: "@Model final class A {\n    @Relationship var b: B?\n}")
    }
}

extension String {
    /// Returns how often a text occurs.
    func components(of text: String) -> Int { ranges(of: text).count }
}
