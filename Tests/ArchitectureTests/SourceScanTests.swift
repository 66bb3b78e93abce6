import Testing

@Suite struct SourceScanTests {
    private func file(_ text: String) -> SourceFile { SourceFile(path: "Sample.swift", text: text) }

    @Test func commentsAndStringsAreBlankedAndLinesStay() {
        let code = SwiftText.blanked(
            """
            let a = "{ // not a comment \\(f("}")) {" // { comment
            /* { /* nested { */ still { */ let b = #"raw \\( " { "#
            let c = \"\"\"
              { " {
              \"\"\"; f(1)
            """)
        #expect(!code.contains("{"))
        #expect(!code.contains("comment"))
        #expect(code.contains("let a ="))
        #expect(code.contains("let b ="))
        #expect(code.contains("f(1)"))
        #expect(code.split(separator: "\n", omittingEmptySubsequences: false).count == 5)
    }

    @Test func aFunctionIsMeasuredFromItsKeywordToItsClosingBrace() {
        let found = file(
            """
            struct A {
                init(_ x: Int = { 1 }()) {
                    self.init("{")
                }
                func one() -> [Int] where T: P {
                    if x { y() } else { z() }
                }
                func two(
                    a: Int
                ) {}
            }
            """
        ).functions
        #expect(
            found == [
                .init(name: "init", line: 2, length: 3), .init(name: "one", line: 5, length: 3),
                .init(name: "two", line: 8, length: 3),
            ])
    }

    @Test func storedPropertiesAreCountedAndComputedOnesAreNot() {
        let found = file(
            """
            public final class A {
                let a: Int
                @Lock private(set) var b = { 1 }()
                public var c: Int { didSet { f() } }
                var d: Int {
                    willSet { f() }
                }
                weak var e: A?
                static let f = 1
                var g: Int { 1 }
                var h: Int {
                    let local = 1
                    return local
                }
                struct B {
                    let inner: Int
                }
                class func make() -> A { A() }
                func body() { let x = 1 }
            }
            struct C { let x: Int }
            actor D {
                var y = 1
            }
            """
        ).classes
        #expect(found == [.init(name: "A", storedProperties: 5), .init(name: "D", storedProperties: 1)])
    }

    @Test func aRequirementHasNoBodyToMeasure() {
        let found = file(
            """
            protocol P {
                func one() throws -> Int
                init(a: Int)
                var x: Int { get }
                func last()
            }
            func free() { return }
            """
        ).functions
        #expect(found == [.init(name: "free", line: 7, length: 1)])
    }

    @Test func nestedFunctionsCountOnTheirOwn() {
        let found = file("func outer() {\n    func inner() {\n    }\n}\n").functions
        #expect(found == [.init(name: "outer", line: 1, length: 4), .init(name: "inner", line: 2, length: 2)])
    }

    @Test func unlabelledParametersAreCounted() {
        let found = file(
            """
            protocol P {
                func one(_ a: Int, _ b: [String: Int], _ c: (Int, Int) -> Void, d: Int)
            }
            init?<A: B<C, D>, E>(_ a: A, of b: E = f(1, 2), _: E.Type) { self.init(a, b, c, d) }
            func two(
                _ a: Set<Int>, @Sendable _ b: @escaping (_ x: Int, _ y: Int, _ z: Int) -> Set<Int>,
                _ c: @autoclosure () -> Int = { 1 }()
            ) { func three(a: Int, _ b: Int) {} }
            subscript(a: Int, of b: Int, c: Int) -> Int { a }
            func none() { x.init(1, 2, 3) }
            static func < (a: Int, _ b: Int) -> Bool { true }
            """
        ).signatures
        #expect(found.map(\.unlabelled) == [3, 2, 3, 1, 2, 0, 1])
        #expect(found.map(\.name) == ["one", "init", "two", "three", "subscript", "none", "<"])
        #expect(found.map(\.line) == [2, 4, 5, 8, 9, 10, 11])
    }

    @Test func importsAreReadWithAttributesAndAccessLevels() {
        let found = file(
            """
            import Alpha
            internal import Beta
            @_spi(X) @testable public import struct Gamma.Inner
            @preconcurrency import Delta
            // import Epsilon
            let text = "import Zeta"
            """
        ).imports
        #expect(found.map(\.module) == ["Alpha", "Beta", "Gamma", "Delta"])
        #expect(found.map(\.access) == [nil, "internal", "public", nil])
    }

    @Test func anUnsafeThingWithoutAReasonIsFound() {
        let bare = file("/// A box.\nfinal class Box: @unchecked Sendable {\n}\n")
        let reasoned = file(
            "/// A box. Unchecked because all state is behind a lock.\nfinal class Box: @unchecked Sendable {\n}\n")
        let farAway = file(
            "// Unchecked because: lock.\n" + String(repeating: "let a = 1\n", count: 9) + "struct B: @unchecked Sendable {}\n")
        #expect(bare.unreasonedUnsafeLines == [2])
        #expect(reasoned.unreasonedUnsafeLines == [])
        #expect(farAway.unreasonedUnsafeLines == [11])
    }

    @Test func manifestTargetsAreReadWithTheirDependencies() {
        let found = file(
            """
            targets: [
                .systemLibrary(name: "CX", providers: [.apt(["libx"])]),
                .target(name: "A", dependencies: ["CX"]),
                .testTarget(
                    name: "ATests",
                    dependencies: ["A", .product(name: "P", package: "p")],
                    path: "Tests/A"),
            ]
            """
        ).manifestTargets
        #expect(found.map(\.name) == ["CX", "A", "ATests"])
        #expect(found.map(\.dependencies) == [[], ["CX"], ["A"]])
        #expect(found.map(\.products) == [[], [], ["P"]])
    }
}
