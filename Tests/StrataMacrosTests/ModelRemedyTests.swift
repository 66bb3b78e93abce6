import Testing

/// Repairs of mistakes in models that the compiler can apply.
@Suite struct ModelRemedyTests {
    /// A body of a model class, the body after its fix-it, and the text of the fix-it.
    static let repairs: [(String, String, String)] = [
        ("var (a, b) = (1, 2)", "var a = 1\n    var b = 2", "declare each property on its own line"),
        ("var a = [1].count", "var a: <#Type#> = [1].count", "add the type"),
        ("@Transient var a: Int", "@Transient var a: Int = <#value#>", "add an initial value"),
        ("@Transient let a: Int?", "@Transient let a: Int? = <#value#>", "add an initial value"),
        ("@Transient var a: Optional<Int>", "@Transient var a: Optional<Int> = nil", "add an initial value"),
        (
            "@Attribute(.rule(.length(1...))) var a: String", "@Attribute(.length(1...)) var a: String", "use '.length(1...)'"
        ),
        ("@Attribute(.unique, .length(1...)) var a: UUID", "@Attribute(.unique) var a: UUID", "remove '.length(1...)'"),
        ("@Attribute(.range(0...1)) var a = true", "@Attribute var a = true", "remove '.range(0...1)'"),
        ("@Attribute(.pattern(/a/), .indexed) var a = 1", "@Attribute(.indexed) var a = 1", "remove '.pattern(/a/)'"),
        (
            "@Attribute(.pattern(#/\n        a+\n    /#)) var a: String", "@Attribute(.pattern(#/a+/#)) var a: String",
            "use '.pattern(#/a+/#)'"
        ),
        (
            "@Attribute(.pattern(#\"\"\"\n    \\d+\n    \"\"\"#)) var a: String",
            "@Attribute(.pattern(#\"\\d+\"#)) var a: String", "use '.pattern(#\"\\d+\"#)'"
        ),
        (
            "@Relationship(.required, deleteRule: .cascade, renamedFrom: \"b\") var a: [B]",
            "@Relationship(deleteRule: .cascade, count: 1..., renamedFrom: \"b\") var a: [B]", "use 'count: 1...'"
        ),
        (
            "@Relationship(deleteRule: .cascade, count: 1...) var a: B?",
            "@Relationship(.required, deleteRule: .cascade) var a: B?", "use '.required'"
        ),
        ("@Relationship(.required, count: 1...) var a: B?", "@Relationship(.required) var a: B?", "remove 'count: 1...'"),
        ("@Relationship(.ordered) var a: Set<B>", "@Relationship var a: Set<B>", "remove '.ordered'"),
        (
            "@Relationship(.ordered, deleteRule: .cascade) var a: B?", "@Relationship(deleteRule: .cascade) var a: B?",
            "remove '.ordered'"
        ),
        (
            "@Derived(count: \\A.all) var a: Int = 0", "@Derived(count: \\A.all) var a: Int", "remove the initial value"
        ),
        ("@Derived(count: \\A.all) var a = 0", "@Derived(count: \\A.all) var a: Int", "remove the initial value"),
        (
            "@Derived(count: \\A.all) @Attribute(.unique, .indexed, .range(0...)) var a: Int",
            "@Derived(count: \\A.all) @Attribute(.indexed) var a: Int", "remove '.unique' and '.range(0...)'"
        ),
        (
            "@Attribute(.indexed, renamedFrom: \"a\") var a: Int", "@Attribute(.indexed) var a: Int",
            "remove 'renamedFrom: \"a\"'"
        ),
        ("@Relationship(renamedFrom: nil) var a: [B]", "@Relationship var a: [B]", "remove 'renamedFrom: nil'"),
        ("#Index<A>(\\.a)\n    var a: Int", "#Index<A>([\\.a])\n    var a: Int", "use '[\\.a]'"),
        ("#Unique<Other>([\\.a])\n    var a: Int", "#Unique<A>([\\.a])\n    var a: Int", "use 'A'"),
        ("@Attribute(.unique) var a: Int { 1 }", "var a: Int { 1 }", "remove '@Attribute'"),
        ("@Relationship static var a: [B] = []", "static var a: [B] = []", "remove '@Relationship'"),
        (
            "@available(*, deprecated) @Derived(count: \\A.all) static var a = 1", "@available(*, deprecated) static var a = 1",
            "remove '@Derived'"
        ),
    ]

    /// Checks that a source has one mistake with one fix-it, which makes it right.
    private func expectRepair(of source: String, _ repaired: String, fixIt: String) {
        let expansion = MacroExpansion(of: source)
        #expect(expansion.diagnostics.count == 1)
        #expect(expansion.diagnostics.flatMap(\.fixIts).map(\.message.message) == [fixIt])
        #expect(expansion.applyingFixIts(to: source) == repaired)
        #expect(MacroExpansion(of: repaired).messages == [])
    }

    @Test(arguments: repairs.indices)
    func `S173: a fix-it makes the property right`(_ index: Int) {
        let (body, repaired, fixIt) = Self.repairs[index]
        expectRepair(
            of: "@Model final class A {\n    \(body)\n}", "@Model final class A {\n    \(repaired)\n}", fixIt: fixIt)
    }

    @Test func `S173: a fix-it removes a former name of a class that is its name`() {
        expectRepair(
            of: "@Model(renamedFrom: \"A\") final class A {\n}", "@Model final class A {\n}",
            fixIt: "remove 'renamedFrom: \"A\"'")
        expectRepair(
            of: "@Model(renamedFrom: \"A\", isAbstract: true) class A {\n}", "@Model(isAbstract: true) class A {\n}",
            fixIt: "remove 'renamedFrom: \"A\"'")
    }

    @Test func `S173: a fix-it makes a structure or a class without a superclass an actor`() {
        expectRepair(of: "@ModelActor struct A {\n}", "@ModelActor actor A {\n}", fixIt: "make it an actor")
        expectRepair(of: "@ModelActor final class A {\n}", "@ModelActor final actor A {\n}", fixIt: "make it an actor")
        for source in ["@ModelActor class A: Base {\n}", "@ModelActor open class A {\n}", "@ModelActor enum A {\n}"] {
            let diagnostics = MacroExpansion(of: source).diagnostics
            #expect(diagnostics.count == 1)
            #expect(diagnostics.flatMap(\.fixIts).isEmpty, "\(source)")
        }
    }

    /// The source does not say which of several repairs is meant.
    @Test(arguments: [
        "var (a, b) = pair", "var managedObject: Int", "#if DEBUG\n    var a = 1\n    #endif",
        "@Attribute(option) var a: Int", "@Attribute(.rule(rule)) var a: Int", "@Attribute(renamedFrom: old) var a: Int",
        "@Attribute(.pattern(#/\n    a b\n    /#)) var a: String", "@Relationship(option) var a: [B]",
        "@Relationship(.required, count: ...9) var a: [B]", "@Relationship(count: 2...2) var a: B?",
        "@Relationship(inverse: path) var a: B?", "@Derived(count: all) var a: Int",
        "#Index<A>([\\.b])\n    @Transient var b = 1", "@Attribute(.unique) @Attribute(.indexed) var a: Int",
    ])
    func `S173: a mistake with several possible repairs has no fix-it`(_ body: String) {
        let diagnostics = MacroExpansion(of: "@Model final class A {\n    \(body)\n}").diagnostics
        #expect(diagnostics.count == 1)
        #expect(diagnostics.flatMap(\.fixIts).isEmpty)
    }
}
