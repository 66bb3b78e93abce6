import Foundation
import StoreInterface
import StoreModel
import Testing

@Suite struct ValueOrderTests {
    static let values: [Value] = [
        .null, .bool(false), .bool(true), .int(.min), .int(-1), .int(0), .int(1), .int(.max), .uint(0), .uint(1), .uint(1 << 63),
        .uint(.max), .double(-.infinity), .double(-0.0), .double(0), .double(0.5), .double(1e19), .double(.infinity),
        .double(.nan),
        .string(""), .string("a"), .string("aa"), .string("b"), .string("é"), .string("e\u{301}"), .string("\u{ffff}"),
        .string("𝄞"), .data(Data()), .data(Data([1])), .data(Data([1, 0])), .data(Data([2])),
        .uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))),
        .uuid(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))), .reference(0), .reference(.max),
    ]

    @Test func theOrderIsTotal() {
        for a in Self.values {
            #expect(a.order(a) == 0)
            for b in Self.values {
                #expect(a.order(b).signum() == -b.order(a).signum(), "\(a) \(b)")
                for c in Self.values where a.order(b) <= 0 && b.order(c) <= 0 {
                    #expect(a.order(c) <= 0, "\(a) \(b) \(c)")
                }
            }
        }
    }

    @Test func equalValuesHaveTheSameHashAndOrderAlike() {
        for a in Self.values {
            for b in Self.values where a == b {
                #expect(a.hashValue == b.hashValue)
                #expect(a.order(b) == 0)
            }
        }
    }

    @Test func canonicallyEquivalentStringsAreDifferentValues() {
        #expect("é" == "e\u{301}")
        #expect(Value.string("é") != .string("e\u{301}"))
        #expect(!Set([Value.string("é")]).contains(.string("e\u{301}")))
    }

    @Test func stringsOrderByCodePointsNotByUTF16() {
        #expect(Value.string("\u{ffff}").order(.string("𝄞")) < 0)
        #expect(Value.string("Z").order(.string("a")) < 0)
    }

    @Test func numbersOfDifferentClassesCompareByValue() {
        #expect(Value.uint(3).order(.double(2.5)) > 0)
        #expect(Value.int(-1).order(.uint(0)) < 0)
        #expect(Value.int(5).order(.double(.nan)) < 0)
    }

    @Test func S132_nullIsFirstAscendingAndLastDescending() {
        let up = StoreSort(column: 0)
        let down = StoreSort(column: 0, direction: .descending)
        #expect(up.order(.null, .int(.min)) < 0)
        #expect(down.order(.null, .int(.min)) > 0)
        let plain = StoreSort(column: 0, caseSensitivity: .insensitive)
        #expect(plain.order(.string("ABC"), .string("abc")) == 0)
    }

    @Test func comparisonsHaveTwoValues() {
        typealias P = StorePredicate
        #expect(P.compare(.null, .equal, to: .null))
        #expect(!P.compare(.null, .notEqual, to: .null))
        #expect(P.compare(.null, .notEqual, to: .int(1)))
        #expect(!P.compare(.null, .less, to: .int(1)))
        #expect(!P.compare(.int(1), .greater, to: .null))
        #expect(!P.compare(.double(.nan), .equal, to: .double(.nan)))
        #expect(P.compare(.double(.nan), .notEqual, to: .double(.nan)))
        #expect(!P.compare(.double(.nan), .greater, to: .double(1)))
    }
}
