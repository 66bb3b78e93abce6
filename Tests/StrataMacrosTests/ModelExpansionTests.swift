import Foundation
import StrataMacros
import Testing

/// The code that `@Model` generates.
@Suite struct ModelExpansionTests {
    static let songs = """
        import ObjectGraph

        @Model final class Song {
            @Attribute(.unique) var isrc: String
            @Attribute(renamedFrom: "name") var title: String
            @Attribute(.indexed, .preserveValueOnDeletion) var plays: Int = 0
            var rating: Double?
            @Relationship(inverse: \\Band.songs, renamedFrom: "group") var band: Band?
            @Transient var isPlaying = false
        }

        @Model(renamedFrom: "Group") final class Band {
            var name: String
            @Relationship(deleteRule: .cascade) var songs: [Song]
        }
        """

    /// The hand-written file compiles and has tests of its own, so this test also shows that the expansion is right.
    @Test func theExpansionIsTheHandWrittenModel() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "StrataTests/HandWrittenModels.swift")
        let handWritten = MacroExpansion.tokens(try String(contentsOf: file, encoding: .utf8))
        let expansion = MacroExpansion(of: Self.songs)
        #expect(expansion.messages == [])
        let expanded = MacroExpansion.tokens(expansion.text)
        for (number, (expected, found)) in zip(handWritten, expanded).enumerated() where expected != found {
            let place = handWritten[max(0, number - 10)...number].joined(separator: " ")
            Issue.record("the hand-written text has \(expected) where the macro writes \(found), after: \(place)")
            return
        }
        #expect(handWritten.count == expanded.count)
    }

    /// Without it, the compiler does not see the first one while it expands a model of another file.
    @Test func `a model of StrataSwiftData states Strata's protocol and its own`() {
        let model = "@Model final class Song { var title = \"\" }"
        let text = MacroExpansion(of: model, model: SwiftDataModelMacro.self).text
        #expect(text.contains("nonisolated extension Song: _Strata.StoredModel, _Strata.PersistentModel {"))
        #expect(MacroExpansion(of: model).text.contains("nonisolated extension Song: PersistentModel {"))
    }

    @Test func `rules are arguments of the descriptions`() {
        let expansion = MacroExpansion(
            of: """
                @Model final class A {
                    @Attribute(.unique, .length(1...80), .pattern(/[a-z]\\/#"##/)) var text: String = "a"
                    @Attribute(.required) var kind: Kind?
                    @Attribute(.pattern("[a-z]+")) var other: String
                    @Relationship(.required, deleteRule: .deny) var one: B?
                    @Relationship(count: 1...) var many: [B]
                    @Relationship(inverse: \\B.a, count: ...3) var set: Set<B>
                }
                """)
        #expect(expansion.messages == [])
        let text = MacroExpansion.tokens(expansion.text).joined()
        let expected = [
            "index:.unique,default:\"a\",rules:[.length(1...80),.pattern(###\"[a-z]\\/#\"##\"###)]",
            "of:\\A.kind,rules:[.required]", "of:\\A.other,rules:[.pattern(\"[a-z]+\")]",
            "of:\\A.one,deleteRule:.deny,rules:[.required]", "of:\\A.many,rules:[.count(1...)]",
            "inverse:\"a\",rules:[.count(...3)]",
        ]
        for part in expected { #expect(text.contains(part), "\(part)") }
    }

    /// Catches: a model that the optimizer allocates on the stack, where a context cannot retain it.
    @Test func `each initializer is marked once so that it is not inlined`() {
        let written = [
            "convenience init() { self.init(text: \"\") }", "init?(text: String?) { return nil }",
            "@inline(never) init(text: String) {}", "@inline(__always) init(forced: String) {}",
        ]
        let model = "@Model class A {\nvar text: String\n\(written.joined(separator: "\n"))\n}"
        let text = MacroExpansion.tokens(MacroExpansion(of: model).text).joined(separator: " ")
        // Those of the program, and the one by which `init(managedObject:)` makes a model.
        #expect(text.ranges(of: "@ inline ( never )").count == written.count + 1, "\(text)")
        let memberwise = MacroExpansion(of: "@Model class A { var text: String }").text
        #expect(memberwise.contains("@inline(never) init(text: String)"), "\(memberwise)")
    }

    @Test func anAttributeReadsAndWritesItsColumn() {
        expectExpansion(
            of: """
                final class A {
                    @PersistedAttribute(3) var count: Int
                }
                """,
            """
            final class A {
                var count: Int {
                    @storageRestrictions(initializes: _$count, accesses: __$modelAnchor)
                    init(initialValue) {
                        __$modelAnchor.object.initialize(3, to: initialValue)
                        _$count = ModelPlaceholder()
                    }
                    get {
                        __$modelAnchor.object.get(3)
                    }
                    set {
                        __$modelAnchor.object.set(3, to: newValue)
                    }
                }

                private var _$count: ModelPlaceholder
            }
            """)
    }

    @Test func membersAreAsVisibleAsTheClass() {
        for access in ["public", "package"] {
            let text = MacroExpansion(of: "@Model \(access) final class A {\n\(access) var a: Int\n}").text
            #expect(text.contains("\(access) var managedObject: ManagedObject"))
            #expect(text.contains("\(access) static let entityDescription"))
            #expect(text.contains("\(access) static let columnsByKeyPath"))
            #expect(text.contains("\(access) convenience init(managedObject: ManagedObject)"))
        }
    }

    /// Catches: members that are less visible than the class, which then does not conform to the protocol.
    @Test(arguments: ["public", "package"])
    func `S173: members are as visible as a class that has the access level of its extension`(_ access: String) {
        let model = "@Model final class A {\nvar a: Int\n}"
        let text = MacroExpansion(of: "\(access) extension X {\n\(model)\n}").text
        for member in [
            "var managedObject: ManagedObject", "static let entityDescription", "static let columnsByKeyPath",
            "convenience init(managedObject: ManagedObject)",
        ] { #expect(text.contains("\(access) \(member)"), "\(member)") }
        let actor = MacroExpansion(of: "\(access) extension X {\n@ModelActor actor A {}\n}").text
        #expect(actor.contains("\(access) nonisolated let modelContainer") && actor.contains("\(access) init(modelContainer:"))
        for source in [
            "extension X {\n\(model)\n}", "\(access) extension X {\nenum Y {\n\(model)\n}\n}",
            "\(access) extension X {\n@Model internal final class A {\nvar a: Int\n}\n}",
        ] {
            let inner = MacroExpansion(of: source).text
            #expect(inner.contains("var managedObject: ManagedObject"), "\(source)")
            #expect(!inner.contains("\(access) var managedObject"), "\(source)")
        }
    }

    @Test func numbersFollowTheOrderOfDeclaration() {
        let text = MacroExpansion(
            of: """
                @Model final class A {
                    @Relationship var many: [A]
                    var first: Int
                    @Relationship var one: Optional<A> = nil
                    @Transient var skipped = 0
                    var second: Int
                    @Relationship var more: Array<A>
                }
                """
        ).text
        #expect(text.contains("__$modelAnchor.object.toMany(0)"))
        #expect(text.contains("__$modelAnchor.object.get(0)"))
        #expect(text.contains("__$modelAnchor.object.toOne(1, 1)"))
        #expect(text.contains("__$modelAnchor.object.get(2)"))
        #expect(text.contains("__$modelAnchor.object.toMany(2)"))
    }

    @Test func anInitializerIsWrittenOnlyWhereThereIsNone() {
        let own = "@Model final class A {\nvar a: Int\ninit() { a = 1 }\n}"
        #expect(!MacroExpansion(of: own).text.contains("init(a: Int)"))
        let convenience = "@Model final class A {\nvar a: Int\nconvenience init() { self.init(a: 1) }\n}"
        #expect(MacroExpansion(of: convenience).text.contains("init(a: Int)"))
        let inferred = "@Model final class A {\nvar a = -1\nvar b = \"b\"\nvar c = 0.5\nvar d = true\nvar e = Date()\n}"
        #expect(
            MacroExpansion(of: inferred).text.contains(
                "init(a: Int = -1, b: String = \"b\", c: Double = 0.5, d: Bool = true, e: Date = Date())"))
        let failable =
            "@Model final class A {\nvar a = URL(string: \"b\")\nvar b = Int(\"1\")\nvar c = URL(filePath: \"b\")\nvar d: Int!\n}"
        #expect(
            MacroExpansion(of: failable).text.contains(
                "init(a: URL? = URL(string: \"b\"), b: Int? = Int(\"1\"), c: URL = URL(filePath: \"b\"), d: Int? = nil)"))
    }

    /// Catches: a parameter of a private type, with which the initializer does not compile.
    @Test func `a private property with a value is no parameter, and one without a value limits the initializer`() {
        let source = """
            @Model final class A {
                var a: Int
                private var b: B?
                fileprivate var c = find()
                private(set) var d = 1
                @Relationship private var e: [A]
            }
            """
        let expansion = MacroExpansion(of: source)
        #expect(expansion.messages == [])
        #expect(expansion.text.contains(" init(a: Int, d: Int = 1)") && !expansion.text.contains("private init(a:"))
        for name in ["b", "c", "e"] { #expect(!expansion.text.contains("self.\(name) = \(name)")) }
        let limited = MacroExpansion(of: "@Model final class A {\nfileprivate var a: B\n}").text
        #expect(limited.contains("fileprivate init(a: B)"))
        let hidden = MacroExpansion(of: "@Model final class A {\nprivate var a: B\nfileprivate var b: B\nvar c = 1\n}").text
        #expect(hidden.contains("private init(a: B, b: B, c: Int = 1)") && !hidden.contains("fileprivate init"))
    }

    @Test func `S178: initial values without an effect are in the description`() {
        let text = MacroExpansion(
            of: """
                @Model final class A {
                    var a: Int = 1
                    var b: Mood = .none
                    var c: Date = .now
                    var d = Date()
                    var e: String = "\\(1)"
                    var f: Mood! = .calm
                    var g: [Place] = [Place(name: "a")]
                    var h: [String: Int] = [:]
                    var i = Mood.calm
                    var j: Int = 60 * 60
                    var k: Int = -1
                    var l: Color = Theme.dark.color(at: 1)
                    var m: Int? = nil
                }
                """
        ).text
        for part in [
            "of: \\A.a, default: 1)", "of: \\A.b, default: (.none as Mood))", "of: \\A.c, default: (.now as Date))",
            "of: \\A.d, default: Date())", "of: \\A.e, default: (\"\\(1)\" as String))",
            "of: \\A.f, default: (.calm as Mood?))", "of: \\A.g, default: ([Place(name: \"a\")] as [Place]))",
            "of: \\A.h, default: ([:] as [String: Int]))", "of: \\A.i, default: Mood.calm)",
            "of: \\A.j, default: ((60 * 60) as Int))", "of: \\A.k, default: -1)",
            "of: \\A.l, default: (Theme.dark.color(at: 1) as Color))", "of: \\A.m)",
        ] { #expect(text.contains(part), "\(part)") }
    }

    @Test func `S178: calls of functions and closures, and variables, are not in the description`() {
        let values = [
            "next()", "count", "shared.count", "{ 1 }()", "Number.next { 1 }", "[next()]", "Number(next())", "\"\\(next())\"",
        ]
        for value in values {
            let text = MacroExpansion(of: "@Model final class A {\nvar a: Number = \(value)\n}").text
            #expect(text.contains("of: \\A.a)"), "\(value)")
        }
    }

    @Test func namesInBackticksAreStoredWithoutThem() {
        let expansion = MacroExpansion(
            of: """
                @Model final class `Type` {
                    var `extension`: String
                    @Relationship(inverse: \\`Type`.`default`) var `in`: `Type`?
                    @Relationship var `default`: [`Type`]
                    var `play count`: Int
                    #Index<`Type`>([\\.`extension`])
                }
                """)
        #expect(expansion.messages == [])
        let text = expansion.text
        #expect(text.contains("private var _$extension: ModelPlaceholder"))
        #expect(text.contains("initializes: _$extension, accesses"))
        #expect(text.contains("private var `_$play count`: ModelPlaceholder"))
        #expect(text.contains("_$extension = ModelPlaceholder()\n        `_$play count` = ModelPlaceholder()"))
        #expect(text.contains("name: \"Type\""))
        #expect(text.contains("AttributeDescription(\"extension\", of: \\`Type`.`extension`)"))
        #expect(text.contains("RelationshipDescription(\"in\", of: \\`Type`.`in`, inverse: \"default\")"))
        #expect(text.contains("\\`Type`.`play count`: \"play count\""))
        #expect(text.contains("IndexDescription(properties: [\"extension\"]"))
        #expect(text.contains("init(`extension`: String, `in`: `Type`? = nil, `default`: [`Type`] = [], `play count`: Int)"))
        #expect(text.contains("self.`extension` = `extension`"))
    }

    /// Catches: a quotation mark of a name, which ends the literal with the name in the generated code.
    @Test func `S173: quotation marks of names are escaped in literals`() {
        let expansion = MacroExpansion(
            of: #"""
                @Model final class `7" record` {
                    var `12" single`: Bool
                    @Relationship(inverse: \Sleeve.`7" disc`) var sleeve: Sleeve?
                    #Index<`7" record`>([\.`12" single`])
                }
                """#)
        #expect(expansion.messages == [])
        for part in [
            #"name: "7\" record""#, #"AttributeDescription("12\" single", of: \`7" record`.`12" single`)"#,
            #"\`7" record`.`12" single`: "12\" single","#, #"inverse: "7\" disc""#,
            #"IndexDescription(properties: ["12\" single"]"#, #"private var `_$12" single`: ModelPlaceholder"#,
        ] { #expect(expansion.text.contains(part), "\(part)") }
    }

    /// Catches: a quotation mark that is not escaped, because a mark that combines with it makes it another character.
    @Test func `S173: quotation marks with combining marks are escaped in literals`() {
        let expansion = MacroExpansion(of: "@Model final class A {\n    var `a\"\u{301}b`: Int\n}")
        #expect(expansion.messages == [])
        #expect(expansion.text.unicodeScalars.contains("\"a\\\"\u{301}b\"".unicodeScalars))
    }

    /// Catches: an initializer that does not compile, because `await` begins an expression.
    @Test func `S173: a property named await has a parameter of another name`() {
        let expansion = MacroExpansion(of: "@Model final class Job {\n    var await: Bool\n    var title: String\n}")
        #expect(expansion.messages == [])
        #expect(expansion.text.contains("init(await __$await: Bool, title: String)"))
        #expect(expansion.text.contains("self.await = __$await"))
    }

    @Test func aClassWithoutPropertiesIsAModel() {
        let expansion = MacroExpansion(of: "@Model final class A {}")
        #expect(expansion.messages == [])
        #expect(expansion.text.contains("columnsByKeyPath: [AnyKeyPath: String] = [\n        :\n    ]"))
    }

    @Test func `S173: numbers are literals until a type decides whether a property has a column`() {
        let text = MacroExpansion(
            of: """
                @Model final class A {
                    var first: Int
                    var mood: Mood
                    var second: Int
                    var others: [B]
                    var third: Int
                    var words: [String]
                    var found = find()
                    var last: Int?
                    init() {}
                }
                """
        ).text
        #expect(text.contains("get(0)"))
        #expect(text.contains("property(1, 0)"))
        #expect(text.contains("get(2)"))
        #expect(text.contains("property(3, PropertyNumbers.relationship0)"))
        #expect(text.contains("get(PropertyNumbers.column0)"))
        #expect(text.contains("column0: Int {"))
        #expect(text.contains("PropertyNumber.column(3, after: [B].self, then: 0)"))
        #expect(text.contains("PropertyNumber.column(3, after: [B].self, then: 1)"))
        #expect(text.contains("PropertyNumber.column(3, after: [B].self, then: 2)"))
        #expect(text.contains("PropertyNumber.relationship(0, after: Mood.self, then: 0)"))
        #expect(text.contains("PropertyNumber.column(PropertyNumbers.column2, of: {"))
        #expect(text.contains("(model: A) in"))
        #expect(text.contains("description.requireColumns(of: [\"mood\"])"))
        #expect(text.contains("get(PropertyNumbers.column3)"))
    }

    /// Catches: `Box.self` for a generic type whose argument only the compiler infers.
    @Test func `S173: a number after an inferred type is computed from the property`() {
        let expansion = MacroExpansion(
            of: "@Model final class A {\nvar box = Box(1)\nvar mood: Mood?\nvar last: Mood?\ninit() {}\n}")
        #expect(expansion.messages == [])
        let text = MacroExpansion.tokens(expansion.text).joined()
        #expect(text.contains("PropertyNumber.relationship(0,of:{(model:A)inmodel.box},then:0)"))
        #expect(text.contains("PropertyNumber.relationship(PropertyNumbers.relationship0,after:Mood?.self,then:0)"))
        #expect(!text.contains("Box.self"))
    }

    /// Catches: an alias of an array of models under `@Relationship`, after which each property would use the column of the next one.
    @Test func `S173: the column of a relationship whose type may be an alias is checked`() {
        let model =
            "@Model final class A {\n@Relationship var others: Others\n@Relationship var one: B?\nvar last: Int\ninit() {}\n}"
        #expect(MacroExpansion(of: model).text.contains("description.requireColumns(of: [\"others\"])"))
        let text = MacroExpansion(of: model, model: SwiftDataModelMacro.self).text
        #expect(text.contains("description.requireColumns(of: [\"others\", \"one\"])"))
    }

    @Test func `S173: a class that is not final has a required initializer`() {
        #expect(MacroExpansion(of: "@Model class A {}").text.contains("required convenience init(managedObject:"))
        #expect(!MacroExpansion(of: "@Model final class A {}").text.contains("required"))
    }

    /// Swift asks each subclass of an `@unchecked Sendable` class to restate this.
    @Test func `S180: a subclass that restates that it is Sendable is a subclass`() {
        let source = "@Model final class Sub: Base, @unchecked Sendable {\nvar b: Int\ninit() { b = 2; super.init() }\n}"
        let text = MacroExpansion(of: source, missing: []).text
        #expect(text.contains("superentity: Base.entityName") && text.contains("override class var entityName"))
        // This class has no superclass: its protocol refines `PersistentModel`.
        let tag = "@Model final class Tag: Named, @unchecked Sendable {\nvar b: Int\ninit() { b = 2 }\n}"
        #expect(!MacroExpansion(of: tag, missing: []).text.contains("override"))
    }

    @Test func `S185: an index of a subclass may have inherited properties`() {
        let expansion = MacroExpansion(
            of: "@Model final class Sub: Base {\n#Unique<Sub>([\\.name, \\.b])\nvar b: Int\ninit() { b = 1; super.init() }\n}",
            missing: [])
        #expect(expansion.messages.isEmpty, "\(expansion.messages)")
        #expect(expansion.text.contains("[\"name\", \"b\"]"), "\(expansion.text)")
    }
}
