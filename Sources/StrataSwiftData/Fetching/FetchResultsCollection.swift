import ObjectGraph

/// The result of a fetch in batches.
///
/// ```swift
/// let trips = try context.fetch(FetchDescriptor<Trip>(), batchSize: 100)
/// for trip in trips { print(trip.name) }
/// ```
public struct FetchResultsCollection<Element>: RandomAccessCollection {
    private let element: (Int) -> Element
    /// The position after the last element.
    public let endIndex: Int

    /// The position of the first element.
    public var startIndex: Int { 0 }

    init(_ elements: [Element]) {
        element = { elements[$0] }
        endIndex = elements.count
    }

    init(count: Int, element: @escaping (Int) -> Element) {
        self.element = element
        endIndex = count
    }

    init(_ batches: FetchedBatches<Element>) {
        element = { batches[$0] }
        endIndex = batches.count
    }

    /// Returns the element at a position.
    public subscript(position: Int) -> Element { element(position) }
}
