/// A list whose elements are removed in the order in which they were added. A single element needs no allocation.
struct FirstInFirstOut<Element> {
    private var first: Element?
    /// The other elements; nil before ``head``.
    private var rest: [Element?] = []
    private var head = 0

    /// The number of unused elements that the array keeps.
    private static var slack: Int { 64 }

    var isEmpty: Bool { first == nil }

    mutating func append(_ element: Element) {
        if first == nil { first = element } else { rest.append(element) }
    }

    /// Removes and returns the oldest element. O(1) on average.
    mutating func popFirst() -> Element? {
        guard let element = first.take() else { return nil }
        guard head < rest.count else { return element }
        first = rest[head].take()
        head += 1
        if head == rest.count {
            rest.removeAll(keepingCapacity: head <= Self.slack)
            head = 0
        } else if head > Self.slack, head > rest.count / 2 {
            rest.removeFirst(head)
            head = 0
        }
        return element
    }
}
