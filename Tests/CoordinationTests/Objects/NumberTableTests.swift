import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct NumberTableTests {
    /// The numbers at which a chunk, the list of chunks or the dense part ends.
    static let limits = ([0, 1, 255, 256, 1023, 1024, 1 << 20, 1 << 28 - 1, 1 << 28, .max] as [UInt64])
        .map(PageNumber.init(rawValue:))

    private static func elements<T>(_ table: NumberTable<T>) -> [T] {
        var found: [T] = []
        table.forEach { found.append($0) }
        return found
    }

    @Test func everyNumberHasAnElementOfItsOwn() {
        let table = NumberTable<PageNumber>()
        for number in Self.limits { #expect(table[number] == nil) }
        for number in Self.limits { table[number] = number }
        for number in Self.limits { #expect(table[number] == number) }
        #expect(Self.elements(table).sorted() == Self.limits)
        for number in Self.limits { table[number] = nil }
        for number in Self.limits { #expect(table[number] == nil) }
        #expect(Self.elements(table).isEmpty)
    }

    @Test func clearingANumberThatWasNeverUsedDoesNothing() {
        let table = NumberTable<Int>()
        for number in Self.limits { table[number] = nil }
        #expect(Self.elements(table).isEmpty)
        table[7] = 1
        table[8] = nil
        table[PageNumber(rawValue: 1 << 27)] = nil
        #expect(Self.elements(table) == [1])
    }

    @Test func randomElementsAreThoseOfADictionary() {
        var numbers = SeededGenerator()
        let table = NumberTable<Int>()
        var expected: [PageNumber: Int] = [:]
        for value in 0..<4_000 {
            let near = Self.limits[numbers.below(Self.limits.count)].rawValue
            let number = PageNumber(
                rawValue: numbers.chance(70) ? UInt64(numbers.below(2_000)) : near &+ UInt64(numbers.below(5)) &- 2)
            let element = numbers.chance(30) ? nil : value
            (table[number], expected[number]) = (element, element)
            #expect(table[number] == element)
        }
        for (number, element) in expected { #expect(table[number] == element, "\(number)") }
        #expect(Self.elements(table).sorted() == expected.values.sorted())
    }

    private final class Element {}

    /// Catches: elements that the memory of the table retains after it.
    @Test func elementsAreReleasedWhenTheyAreReplacedAndWithTheTable() {
        for number in Self.limits {
            let table = NumberTable<Element>()
            weak var first: Element?
            weak var second: Element?
            do {
                let (a, b) = (Element(), Element())
                (first, second) = (a, b)
                table[number] = a
                table[number] = b
            }
            #expect(first == nil && second != nil, "\(number)")
            withExtendedLifetime(table) {}
            do {
                let other = NumberTable<Element>()
                let element = Element()
                first = element
                other[number] = element
            }
            #expect(first == nil, "\(number)")
        }
    }
}
