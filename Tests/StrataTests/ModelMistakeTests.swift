import Testing

/// The compiler's messages about mistakes in models: one per mistake, and none about their consequences.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct ModelMistakeTests {
    /// A model with a mistake replaces `Broken`, which the rest of the program uses as a model.
    private static func program(_ model: String) -> String {
        """
        import Foundation
        import Strata

        final class Opaque {}
        enum Mood: String { case calm }
        @propertyWrapper struct Clamped { var wrappedValue: Int }
        @Model final class Other { var x = 1 }

        \(model)

        @Model final class Friend { var broken: [Broken] = []; var best: Broken?; init() {} }
        func useAsModel<M: PersistentModel>(_ type: M.Type) -> String { M.entityName }
        func use() throws { _ = try Model(Broken.self, Friend.self); print(useAsModel(Broken.self)) }
        """
    }

    /// Bodies of classes, and a part of the only message.
    static let mistakes: [(String, String)] = [
        ("var a: Opaque?; init() {}", "this type cannot be stored"),
        ("var a: [Opaque] = []", "this type cannot be stored"),
        ("var a = Opaque()", "this type cannot be stored"),
        ("var a: [Mood] = []", "this type cannot be stored"),
        ("var a: (Int, Int); init() { a = (1, 2) }", "this type cannot be stored"),
        ("var a: Int; init() {}", "without initializing all stored properties"),
        ("@Attribute(.uniqe) var a: Int", "'uniqe'"),
        ("@Relationship(.sorted) var a: [Other]", "'sorted'"),
        ("let a: Int", "declare it with 'var'"),
        ("let a = 1", "declare it with 'var'"),
        ("@Attribute(.unique) let a: Int; init(a: Int) { self.a = a }", "declare it with 'var'"),
        ("let a: [Other]", "declare it with 'var'"),
        ("weak var a: Other?", "cannot be 'weak' or 'unowned'"),
        ("var b: Int; lazy var a = 1", "cannot be 'lazy'"),
        ("@Clamped var a = 1", "a property wrapper cannot be used"),
        ("var a = 1, b = 2", "on its own line"),
        ("var a: Int { didSet {} }; init() { a = 1 }", "cannot have observers"),
        ("var b: [Other]; @Derived(count: \\Broken.b) var a = 0", "has no initial value"),
        ("var b: [Other]; @Derived(count: \\Broken.b) @Attribute(.unique) var a: Int", "is not unique"),
        ("@Derived(from: \\Broken.b) var a: Other?; var b = 1", "is a number, a string, a date"),
        ("@Relationship var a: Int?", "without '@Relationship'"),
        ("@Relationship var a: Mood?", "without '@Relationship'"),
        ("@Relationship var a: [Mood]", "without '@Relationship'"),
        ("@Relationship var a: Mood", "without '@Relationship'"),
        ("@Attribute(.unique) var a: Other?", "Remove '@Attribute'"),
        ("@Attribute var a: [Other]", "Remove '@Attribute'"),
        ("@Transient var a: Int", "a transient property needs an initial value"),
        ("var managedObject = 1", "choose another name"),
        ("@Relationship(inverse: \\Friend.best) var a: Other?", "the inverse must be a property"),
        ("var a = [1].count", "give the type of this property"),
        ("\n#if os(Linux) || os(macOS)\nvar a: Int\n#endif\n", "cannot be inside '#if'"),
        ("@Attribute(.length(1...)) var a = 1", ".length is for strings"),
        ("@Attribute(.range(0...1)) var a = \"\"", ".range is for numbers"),
        ("@Attribute(.pattern(/a/)) var a = 1", ".pattern is for strings"),
        ("@Relationship(.required) var a: [Other]", ".required is for a relationship to one object"),
        ("@Relationship(count: 1...) var a: Other?", "use .required for one object"),
        ("var a: () -> Void; var b: Mood?", "a closure cannot be stored"),
        ("var a: @Sendable () -> Void = {}; var b: Mood?", "a closure cannot be stored"),
        ("var a: any Error; var b: Mood?; init(a: any Error) { self.a = a }", "this type cannot be stored"),
        ("@Attribute(.unique) var a: Int { 1 }", "is not stored, so this attribute would change nothing"),
    ]

    @Test(arguments: mistakes.indices)
    func `S173: one mistake in a model is one error, on the line of the property`(_ index: Int) async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let (body, expected) = Self.mistakes[index]
        let source = Self.program("@Model final class Broken {\n\(body)\n}")
        let errors = try await compiler.messages(about: source).filter { $0.contains(" error: ") }
        #expect(errors.count == 1, "\(body): \(errors)")
        #expect(errors.allSatisfy { $0.contains(expected) }, "\(body): \(errors)")
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "@Model final class Broken {"))
        let property = try #require(lines[start...].firstIndex { $0.contains("var ") || $0.contains("let ") })
        for error in errors {
            // The name of another file means an error in the code of a macro.
            guard let found = error.firstMatch(of: /strata-[^:]*\.swift:(\d+):\d+: error:/) else { continue }
            #expect(Int(found.1) == property + 1, "\(body): \(error)")
        }
    }

    @Test func `a model without an initializer has properties of private types`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import Strata

            private struct Position: Codable { var x = 0 }
            @Model final class Note {
                var title: String
                private var position: Position?
                private(set) var count = 0
            }
            @Model final class Pin {
                fileprivate var position: Position
                var title = ""
            }
            @Model final class Leaf {
                private struct Vein: Codable { var length = 0 }
                private var vein: Vein
                static func make() -> Leaf { Leaf(vein: Vein()) }
            }
            @Model final class Twig {
                private var buds = ["a"].count
            }
            private func use() { print(Note(title: "a", count: 1), Pin(position: Position()), Leaf.make(), Twig()) }
            """
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    /// Catches: members that are less visible than the class, with which it does not conform to a public protocol.
    @Test(arguments: ["Strata", "StrataSwiftData"], ["public", "package"])
    func `S173: a model without an access level compiles in an extension with one`(_ module: String, _ access: String)
        async throws
    {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import \(module)

            \(access) enum Catalog {}
            \(access) extension Catalog {
                @Model final class Item {
                    var name: String
                    var parts: [Part] = []
                    init(name: String) { self.name = name }
                }
                @Model class Part {
                    var size = 1
                    var item: Item?
                    init() {}
                }
                \(module == "Strata" ? "" : "@ModelActor actor Importer {}")
            }
            """
        let messages = try await compiler.messages(about: source, flags: ["-package-name", "test"])
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    /// Catches: `Box.self` for a generic type whose argument only the compiler infers.
    @Test func `S173: an initial value of a generic type compiles before a property whose type decides`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import Strata

            struct Box<Content: Codable>: Codable {
                var content: Content
                init(_ content: Content) { self.content = content }
            }
            enum Mood: String, Codable { case calm }
            @Model final class Crate {
                var box = Box(1)
                var mood: Mood?
                init() {}
            }
            """
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    /// Catches: a quotation mark of a name, which ends the literal with the name in the generated code.
    @Test func `S173: properties whose names have quotation marks compile`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = #"""
            import Strata

            @Model final class Disc {
                var `12" single`: Bool
                @Relationship(inverse: \Sleeve.`7" disc`) var `card "sleeve"`: Sleeve?
                #Index<Disc>([\.`12" single`])
            }
            @Model final class Sleeve {
                var `7" disc`: Disc?
                init() {}
            }
            func use() { print(Disc(`12" single`: true).`12" single`) }
            """#
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }

    @Test func `S173: in the Swift 5 language mode, a constant is stored`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = Self.program(
            """
            @Model class Broken {
                @Attribute(.unique) let id: UUID
                let made = Date.now
                let other: Other?
                init(id: UUID, other: Other? = nil) { self.id = id; self.other = other }
            }
            """)
        let messages = try await compiler.messages(about: source, languageMode: 5)
        #expect(messages.filter { $0.contains(" error: ") } == [])
    }

    /// Catches: errors in the code of the macros, which follow from the constants and hide them; and the compiler's own error about
    /// accessors of a constant, which comes three times.
    @Test func `S173: in the Swift 6 language mode, each stored constant of a model is an error on its line`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = Self.program(
            """
            @Model class Broken {
                @Attribute(.unique) let id: UUID
                let made = Date.now
                let other: Other?
                var name = ""
                let later: Int
                init(id: UUID, other: Other? = nil) { self.id = id; self.other = other; later = 1 }
            }
            """)
        let errors = try await compiler.messages(about: source).filter { $0.contains(" error: ") }
        #expect(errors.allSatisfy { $0.contains("declare it with 'var'") }, "\(errors)")
        #expect(errors.count == 4, "\(errors)")
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let constants = lines.indices.filter { lines[$0].contains(" let ") }.map { $0 + 1 }
        let found = errors.compactMap { $0.firstMatch(of: /strata-[^:]*\.swift:(\d+):\d+: error:/).flatMap { Int($0.1) } }
        #expect(constants.count == 4 && found.sorted() == constants, "\(errors)")
    }

    @Test func `S173: in the Swift 5 language mode, a model in SwiftData's spelling stores constants`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import StrataSwiftData

            @Model final class Label {
                @Attribute(.unique, originalName: "code") let id: UUID
                let made = Date.now
                let parent: Label?
                init(id: UUID, parent: Label? = nil) { self.id = id; self.parent = parent }
            }
            """
        let messages = try await compiler.messages(about: source, languageMode: 5)
        #expect(messages.filter { $0.contains(" error: ") } == [])
        // The same with a mistake, so that a source that the compiler never saw does not pass.
        let broken = try await compiler.messages(about: source + "\nlet label: Int = Label.self", languageMode: 5)
        #expect(broken.filter { $0.contains(" error: ") }.count == 1)
    }

    @Test func `S173: a public model with every kind of property compiles in another module's sight`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let source = """
            import Foundation
            import Strata

            public enum Mood: String, Codable, Sendable { case calm }
            @Model open class Person {
                public var id = UUID()
                public var mood: Mood?
                public var friends: [Person] = []
                public var best: Person!
                public var words: [String]?
                public var price = Decimal(3)
                var private1: [Pet]
                private var hidden = 1
                public init() { private1 = [] }
            }
            @Model final class Site {
                var address = URL(string: "https://a.b")
                var number = UInt8("1")
                var token = UUID(uuidString: "1")
                var price = Decimal(string: "1")
            }
            @Model public final class Pet: Codable {
                var name: String
                public required init(from decoder: any Decoder) throws { name = try String(from: decoder) }
                public func encode(to encoder: any Encoder) throws { try name.encode(to: encoder) }
            }
            """
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains("error: ") || $0.contains("warning: ") } == [])
    }
}
