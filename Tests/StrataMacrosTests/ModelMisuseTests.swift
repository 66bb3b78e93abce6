import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import StrataMacros

/// Mistakes in the use of `@Model` are reported at compile time.
@Suite struct ModelMisuseTests {
    /// Bodies of model classes, and the diagnostic of each.
    static let bodies: [(String, ModelDiagnostic)] = [
        ("lazy var a = 1", .lazy),
        ("var a: () -> Void", .closure),
        ("weak var a: Other?", .reference),
        ("unowned var a: Other", .reference),
        ("var a = 1 { didSet {} }", .observers),
        ("@Clamped var a = 1", .wrapped),
        ("var a = 1, b = 2", .severalInOne),
        ("var (a, b) = (1, 2)", .pattern),
        ("var a = [1].count", .untyped),
        ("#if DEBUG\nvar a = 1\n#endif", .conditional),
        ("#if DEBUG\n#else\n#if X\nvar a = 1\n#endif\n#endif", .conditional),
        ("#if DEBUG\n@Attribute(.unique)\n#endif\nvar a: Int", .conditionalMarker),
        (
            "#if DEBUG\n@available(*, deprecated)\n#else\n@Relationship(deleteRule: .cascade)\n#endif\nvar a: [Other]",
            .conditionalMarker
        ),
        ("var managedObject: Int", .reservedName),
        ("@Attribute(option) var a: Int", .unknownOption),
        ("@Attribute(.rule(rule)) var a: String", .unknownOption),
        ("@Attribute(.length(1...) + x) var a: String", .unknownOption),
        ("@Attribute(.length(1...)) var a: Int", .lengthOfOther),
        ("@Attribute(.length(1...)) var a: Date", .lengthOfOther),
        ("@Attribute(.length(1...)) var a: Decimal?", .lengthOfOther),
        ("@Attribute(.range(1...)) var a: String", .rangeOfOther),
        ("@Attribute(.range(1...)) var a = true", .rangeOfOther),
        ("@Attribute(.range(1...)) var a: [Int]?", .rangeOfOther),
        ("@Attribute(.pattern(/a/)) var a = 1", .patternOfOther),
        ("@Attribute(.pattern(/a/)) var a: [String]", .patternOfOther),
        ("@Attribute(.pattern(#/\na\n/#)) var a: String", .patternOnLines),
        ("@Relationship(.required) var a: [Other]", .requiredObjects),
        ("@Relationship(count: 1...) var a: Other?", .countOfOne),
        ("@Attribute(.unique) @Relationship var a: Other?", .attributeOnRelationship),
        ("@Relationship var a: Int", .scalarRelationship),
        ("@Relationship var a: [String]?", .scalarRelationship),
        ("@Relationship var a: [String: Other]", .scalarRelationship),
        ("@Relationship(inverse: path) var a: Other?", .wrongInverse),
        ("@Relationship(inverse: \\Third.all) var a: Other?", .wrongInverse),
        ("@Relationship(inverse: \\Other.first.second) var a: Other?", .wrongInverse),
        ("@Relationship(option) var a: [Other]", .unknownRelationshipOption),
        ("@Relationship(.ordered) var a: Other?", .notOrdered),
        ("@Relationship(.ordered) var a: Set<Other>", .notOrdered),
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
        ("@Derived(count: all) var a: Int", .wrongDerivation),
        ("@Derived(count: \\A.all) var a: Int = 0", .derivedWithValue),
        ("@Derived(count: \\A.all) var a: [Int]", .derivedOfOther),
        ("@Derived(count: \\A.all) @Attribute(.unique) var a: Int", .derivedOption),
        ("#Index<A>([\\.b])\n@Relationship var b: [Other]", .wrongIndex),
        ("#Unique<A>([\\.a, \\.b])\nvar a: Int\n@Transient var b = 1", .wrongIndex),
        ("#Index<A>([\\.b])\nvar b: Int { 1 }", .wrongIndex),
        ("#Index<A>([\\.id])\nvar a: Int", .wrongIndex),
        ("#Index<A>([\\.b.count])\nvar b: String", .wrongIndex),
        ("#Index<Other>([\\.a])\nvar a: Int", .indexOfOther),
        ("#Unique<A.Other>([\\.a])\nvar a: Int", .indexOfOther),
        ("@Attribute(.unique) var a: Int { 1 }", .markerOfOther),
        ("@Attribute static var a = 1", .markerOfOther),
        ("@Relationship var a: [Other] { get { [] } set {} }", .markerOfOther),
        ("@Derived(count: \\A.all) static var a = 1", .markerOfOther),
        ("@Attribute(.unique) @Attribute(.indexed) var a: Int", .repeatedMarker),
        ("@Relationship @Relationship(deleteRule: .cascade) var a: [Other]", .repeatedMarker),
        ("@Derived(count: \\A.all) @Derived(count: \\A.some) var a: Int", .repeatedMarker),
    ]

    /// Bodies with an argument that the compiler refuses, because nothing has this name.
    static let refused = [
        "@Attribute(.uniqe) var a: Int", "@Attribute(.length) var a: String", "@Attribute(.lenght(1...)) var a: String",
        "@Relationship(.unknown) var a: Other?", "@Relationship(.sorted) var a: [Other]", "#Index<A>([\\.b])\nvar a: Int",
        "#Unique<A>([\\.a, \\.b])\nvar a: Int",
    ]

    @Test(arguments: refused)
    func `S173: @Model is silent about a name that the compiler reports`(_ body: String) {
        let expansion = MacroExpansion(of: "@Model final class A {\n\(body)\n}")
        #expect(expansion.messages == [])
        #expect(expansion.text.contains("self.a = a"))
    }

    @Test func `S173: a stored constant is a mistake in the language mode 6 only`() {
        let model = """
            @Model final class A {
                @Attribute(.unique) let a: Int
                let b: Other?
                @Transient let c = 1
                @Attribute(.ephemeral) let d = 1
                static let e = 1
            }
            """
        let expansion = MacroExpansion(of: model, languageMode: 6)
        #expect(expansion.messages == [ModelDiagnostic.constant.message, ModelDiagnostic.constant.message])
        #expect(expansion.lines == [2, 3])
        let corrected = expansion.applyingFixIts(to: model)
        #expect(corrected == model.replacing("let a: Int", with: "var a: Int").replacing("let b: Other?", with: "var b: Other?"))
        #expect(MacroExpansion(of: corrected, languageMode: 6).messages == [])
        for mode in [5, nil] { #expect(MacroExpansion(of: model, languageMode: mode).messages == []) }
    }

    /// Catches: an option that a program declares in an extension, so that it compiles, and that the macro ignores without a word.
    @Test func `S173: a program stops at an option that @Model does not know`() {
        for body in ["@Attribute(.key) var a: Int", "@Attribute(.key(1)) var a: Int", "@Relationship(.key) var a: [Other]"] {
            let text = MacroExpansion(of: "@Model final class A {\n\(body)\n}").text
            #expect(text.contains("preconditionFailure(\"cannot describe A.a: @Model does not know the option .key. "))
        }
    }

    @Test(arguments: bodies.indices)
    func eachMisuseIsNamedOnce(_ index: Int) {
        let (body, misuse) = Self.bodies[index]
        #expect(MacroExpansion(of: "@Model final class A {\n\(body)\n}").messages == [misuse.message])
    }

    @Test(arguments: bodies.indices)
    func `S173: a diagnostic is on the line of the mistaken property`(_ index: Int) {
        let (body, misuse) = Self.bodies[index]
        // The mistake is that of the first property, unless a condition or another property is above it.
        let isBelow = misuse == .conditional || misuse == .sameFormerName
        let above = isBelow ? body.split(separator: "\n").lastIndex { $0.contains("var ") } ?? 0 : 0
        let expansion = MacroExpansion(of: "import Strata\n\n@Model final class A {\n    var first = 1\n\n\(body)\n}")
        #expect(expansion.lines == [6 + above], "\(body)")
    }

    /// Catches: a condition that hides an index, so that the store accepts equal values without a word.
    @Test(arguments: ["Index", "Unique"])
    func `S173: an index inside a condition is reported on its line`(_ name: String) {
        let expansion = MacroExpansion(of: "@Model final class A {\nvar a: Int\n#if DEBUG\n#\(name)<A>([\\.a])\n#endif\n}")
        #expect(expansion.messages == [ModelDiagnostic.conditionalMarker.message])
        #expect(expansion.lines == [4])
    }

    @Test func `an empty list in #Unique requires nothing in a model of StrataSwiftData`() {
        let model = "@Model final class A {\n#Unique<A>([\\.a], [])\nvar a: Int\ninit() { a = 1 }\n}"
        let expansion = MacroExpansion(of: model, model: SwiftDataModelMacro.self)
        #expect(expansion.messages == [])
        #expect(expansion.text.components(of: "IndexDescription(properties:") == 1)
        #expect(MacroExpansion(of: model).messages == [ModelDiagnostic.wrongIndex.message])
    }

    /// Catches: a generated initializer beside those of a condition, or a mistake that is none, because each build has an initializer.
    @Test(arguments: [
        ("#if DEBUG\ninit(b: Int) {}\n#else\ninit(c: Int) {}\n#endif", true),
        (
            "#if X\ninit(b: Int) {}\n#elseif Y\n#if Z\ninit() {}\n#else\ninit(d: Int) {}\n#endif\n#else\ninit(c: Int) {}\n#endif",
            true
        ),
        ("#if DEBUG\ninit(b: Int) {}\n#endif", false),
        ("#if DEBUG\ninit(b: Int) {}\n#elseif X\ninit(c: Int) {}\n#endif", false),
        ("#if DEBUG\ninit(b: Int) {}\n#else\nconvenience init(c: Int) {}\n#endif", false),
    ])
    func `S173: a class has an initializer if each clause of a condition has one`(_ conditions: String, _ isInEachBuild: Bool) {
        let model = MacroExpansion(of: "@Model final class A {\nvar a: Int\n\(conditions)\n}")
        #expect(model.messages == [])
        #expect(model.text.contains("init(a: Int)") != isInEachBuild)
        let untyped = MacroExpansion(of: "@Model final class A {\nvar a = [1].count\n\(conditions)\n}")
        #expect(untyped.messages == (isInEachBuild ? [] : [ModelDiagnostic.untyped.message]))
        let subclass = MacroExpansion(of: "@Model final class Sub: Base {\nvar a: Int\n\(conditions)\n}", missing: [])
        #expect(subclass.messages == (isInEachBuild ? [] : [ModelDiagnostic.subclassInitializer.message]))
    }

    @Test func onlyClassesThatAreNotGenericAreModels() {
        #expect(MacroExpansion(of: "@Model struct A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model enum A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model actor A {}").messages == [ModelDiagnostic.notAClass.message])
        #expect(MacroExpansion(of: "@Model final class A<B> {}").messages == [ModelDiagnostic.generic.message])
    }

    @Test func aModelInsideAGenericTypeIsRefused() {
        let nested = MacroExpansion(of: "struct Page<T> { @Model final class A { var a = 1 } }")
        #expect(nested.messages == [ModelDiagnostic.generic.message])
        #expect(MacroExpansion(of: "struct Page { @Model final class A { var a = 1 } }").messages == [])
    }

    @Test func aModelOfTheMainActorIsRefused() {
        let isolated = MacroExpansion(of: "@MainActor @Model final class A { var a = 1 }")
        #expect(isolated.messages == [ModelDiagnostic.isolated.message])
        #expect(MacroExpansion.tokens(isolated.text).joined().contains("nonisolatedvarmanagedObject"))
    }

    /// Catches: the parts of a type's name, which the parser takes for properties.
    @Test func keyPathsMayNameNestedTypes() {
        let source = """
            @Model final class Crate {
                #Index<Crate>([\\Shop.Crate.name], [\\.name, \\Crate.code])
                @Relationship(inverse: \\Shop.Item.crate) var items: [Shop.Item]
                var name: String
                var code: String
            }
            """
        let expansion = MacroExpansion(of: source)
        #expect(expansion.messages == [])
        let text = MacroExpansion.tokens(expansion.text).joined()
        #expect(text.contains("inverse:\"crate\""))
        let upper = MacroExpansion(
            of: """
                @Model final class A {
                    @Derived(from: \\A.Album?.Title) var t: String?
                    @Derived(from: \\A.Shop.Name) var n: String
                    var Title: String
                    var Album: B?
                    var Shop: C
                }
                """)
        let derived = MacroExpansion.tokens(upper.text).joined()
        #expect(derived.contains("\"Album.Title\"") && derived.contains("\"Shop.Name\""))
        let wrong = MacroExpansion(of: "@Model final class A { @Relationship(inverse: \\Shop.Other.a) var items: [Shop.Item] }")
        #expect(wrong.messages == [ModelDiagnostic.wrongInverse.message])
    }

    /// Catches: a module or an outer type that is taken for a relationship, and a property in upper case that is taken for a type.
    @Test func keyPathsBeginAtTheClassThatTheyName() {
        let expansion = MacroExpansion(
            of: """
                @Model final class Crate {
                    #Index<Crate>([\\Depot.Shop.Crate.Name, \\Shop.Crate.code])
                    @Derived(count: \\Shop.Crate.items) var itemCount: Int
                    @Derived(from: \\Shop.Crate.Owner?.Name) var ownerName: String?
                    @Derived(sum: \\Shop.Item.price, in: \\Shop.Crate.items) var price: Int
                    @Derived(folded: \\Crate.Name) var search: String
                    var items: [Shop.Item]
                    var Owner: Person?
                    var Name: String
                    var code: String
                }
                """)
        #expect(expansion.messages == [])
        let text = MacroExpansion.tokens(expansion.text).joined()
        for part in [
            "properties:[\"Name\",\"code\"]", "count(of:\"items\")", "value(at:\"Owner.Name\")", "sum(of:\"items.price\")",
            "folded(\"Name\")",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        let wrong = MacroExpansion(
            of: "@Model final class A { #Index<A>([\\A.Owner.name])\nvar Owner: B?\nvar name: String }")
        #expect(wrong.messages == [ModelDiagnostic.wrongIndex.message])
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
                #if DEBUG
                @Transient var debugged = 8
                var shown: Int { 9 }
                #endif
                deinit {}
                struct Inner { let a: Int }
            }
            """
        let expansion = MacroExpansion(of: source)
        #expect(expansion.messages == [])
        #expect(expansion.text.components(of: "get(") == 1)
    }

    /// Returns the source after the first fix-it of each diagnostic, and the texts of all fix-its.
    private func fixed(_ source: String) -> (source: String, fixIts: [String]) {
        let expansion = MacroExpansion(of: source)
        let fixIts = expansion.diagnostics.flatMap(\.fixIts)
        return (expansion.applyingFixIts(to: source), fixIts.map(\.message.message))
    }

    @Test(arguments: [
        ("@Model struct A {\n}", "@Model final class A {\n}", "make it a final class"),
        (
            "@Model final class A {\n    lazy var a = 1\n}", "@Model final class A {\n    @Transient lazy var a = 1\n}",
            "mark the property with '@Transient'"
        ),
        (
            "@Model final class A {\n    @Clamped var a = 1\n}", "@Model final class A {\n    @Transient @Clamped var a = 1\n}",
            "mark the property with '@Transient'"
        ),
        (
            "@Model final class A {\n    @Relationship var a: Int\n}", "@Model final class A {\n    var a: Int\n}",
            "remove '@Relationship'"
        ),
        (
            "@Model final class A {\n    @Attribute(.unique) @Relationship var b: B?\n}",
            "@Model final class A {\n    @Relationship var b: B?\n}", "remove '@Attribute'"
        ),
        (
            "@Model final class A {\n    var a = 1, b: Int, c, d: String?\n}",
            "@Model final class A {\n    var a = 1\n    var b: Int\n    var c: String?\n    var d: String?\n}",
            "declare each property on its own line"
        ),
        (
            "@Model final class A {\n    @Attribute(.unique, .length(1...)) var a: Int\n}",
            "@Model final class A {\n    @Attribute(.unique, .range(1...)) var a: Int\n}", "use '.range(1...)'"
        ),
        (
            "@Model final class A {\n    @Attribute(.range(1...), .indexed) var a = \"\"\n}",
            "@Model final class A {\n    @Attribute(.length(1...), .indexed) var a = \"\"\n}", "use '.length(1...)'"
        ),
        (
            "@Model final class A {\n    @Relationship(.required) var a: [B]\n}",
            "@Model final class A {\n    @Relationship(count: 1...) var a: [B]\n}", "use 'count: 1...'"
        ),
        (
            "@Model final class A {\n    @Relationship(count: 1...) var a: B?\n}",
            "@Model final class A {\n    @Relationship(.required) var a: B?\n}", "use '.required'"
        ),
    ])
    func `S173: a fix-it makes the model right`(_ source: String, _ corrected: String, _ name: String) {
        let (found, fixIts) = fixed(source)
        #expect(fixIts == [name])
        #expect(found == corrected)
        #expect(MacroExpansion(of: corrected).messages == [])
    }

    @Test func `S173: of two contradicting markers, either can be removed`() {
        for other in ["Attribute", "Relationship"] {
            let expansion = MacroExpansion(of: "@Model final class A {\n    @Transient @\(other) var a: B? = nil\n}")
            #expect(
                expansion.diagnostics.flatMap(\.fixIts).map(\.message.message) == ["remove '@Transient'", "remove '@\(other)'"])
        }
    }

    @Test func `S173: no fix-it stops storing a property with observers`() {
        #expect(
            MacroExpansion(of: "@Model final class A {\n    var a = 1 { didSet {} }\n}").diagnostics.flatMap(\.fixIts).isEmpty)
    }

    @Test(arguments: bodies.indices)
    func `S173: a class with a mistake is a model for the rest of the program`(_ index: Int) {
        let text = MacroExpansion(of: "@Model final class A {\n\(Self.bodies[index].0)\n}").text
        #expect(text.contains("extension A: PersistentModel"))
        #expect(text.contains("init(managedObject: ManagedObject)"))
        #expect(text.contains("fatalError()"))
    }

    @Test func `S173: only the protocols that a class does not have are added`() {
        let text = MacroExpansion(of: "@Model final class A {}", missing: ["PersistentModel"]).text
        #expect(text.contains("extension A: PersistentModel"))
        #expect(!text.contains("Sendable"))
    }

    /// Catches: an attribute of the language that is taken for a property wrapper.
    @Test(arguments: ["@_spi(Admin) public var a = 1", "@preconcurrency var a = 1", "@ObservationIgnored var a = 1"])
    func attributesOfTheLanguageAreNoPropertyWrappers(_ body: String) {
        #expect(MacroExpansion(of: "@Model public final class A {\n\(body)\n}").messages == [])
    }
}

extension String {
    /// Returns how often a text occurs.
    func components(of text: String) -> Int { ranges(of: text).count }
}
